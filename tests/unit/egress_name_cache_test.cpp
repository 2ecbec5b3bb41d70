#include "plugins/egress/name_cache.hpp"

#include <doctest/doctest.h>

#include "support/egress_loop.hpp"

using namespace ccbox::egress;
using namespace std::chrono_literals;
using status = lookup_result::status;

namespace {

// Answers when the test says so.
class held_resolver : public resolver {
 public:
  struct question : lookup {
    explicit question(held_resolver& of) : of_(of) { ++of_.open; }
    ~question() override { --of_.open; }
    held_resolver& of_;
  };
  std::unique_ptr<lookup> resolve(ccbox::egress::asio::io_context&, const std::string& name,
                                  answer done) override {
    asked.push_back(name);
    waiting.push_back(std::move(done));
    return std::make_unique<question>(*this);
  }
  std::vector<std::string> asked;
  std::vector<answer> waiting;
  int open = 0;
};

struct scene {
  explicit scene(std::chrono::milliseconds limit = 5000ms, std::size_t most = 2)
      : cache(loop.io(), names, limit, most, count) {}
  name_cache::answer find(const std::string& name) {
    name_cache::answer to(loop.io().executor());
    cache.find(name, to);
    return to;
  }
  lookup_result value(const name_cache::answer& of) { return loop.run(of.get()); }
  ccbox::test::egress_loop loop;
  held_resolver names;
  counters count;
  name_cache cache;
};

lookup_result found(std::chrono::seconds ttl) {
  return {status::found, {ip_address::from_v4(0x01020304)}, ttl};
}

}  // namespace

TEST_CASE("equal names are asked once, and all who wait have the answer") {
  scene s;
  const auto one = s.find("a.test"), two = s.find("a.test");
  CHECK(s.names.asked.size() == 1);
  s.names.waiting[0](found(60s));
  CHECK(s.value(one).addresses == found(60s).addresses);
  CHECK(s.value(two).addresses == found(60s).addresses);
  CHECK(s.names.open == 0);
}

TEST_CASE("an answer is kept for its TTL, and not at all with a TTL of 0") {
  scene s;
  s.find("kept.test");
  s.names.waiting[0](found(60s));
  CHECK(s.find("kept.test").is_set());
  s.find("fresh.test");
  s.names.waiting[1](found(0s));
  CHECK_FALSE(s.find("fresh.test").is_set());
  CHECK(s.names.asked.size() == 3);
}

TEST_CASE("a failure is remembered for a moment, so that a storm of retries asks once") {
  scene s;
  s.find("gone.test");
  s.names.waiting[0]({status::no_such_name, {}, {}});
  const auto again = s.find("gone.test");
  REQUIRE(again.is_set());
  CHECK(s.value(again).what == status::no_such_name);
}

TEST_CASE("found without an address is a failure") {
  scene s;
  const auto to = s.find("empty.test");
  s.names.waiting[0]({status::found, {}, 60s});
  CHECK(s.value(to).what == status::failed);
}

TEST_CASE("a question has a limit, after which it is given up") {
  scene s(30ms);
  const auto to = s.find("mute.test");
  CHECK(s.value(to).what == status::timed_out);
  CHECK(s.names.open == 0);
}

TEST_CASE("a session asks a few names at once; the next waits for its turn, within its own limit") {
  scene s(5000ms, 2);
  s.find("a.test");
  s.find("b.test");
  const auto third = s.find("c.test");
  CHECK(s.names.asked.size() == 2);
  s.names.waiting[0](found(60s));
  CHECK(s.names.asked.back() == "c.test");
  s.names.waiting[2](found(60s));
  CHECK(s.value(third).what == status::found);
}

TEST_CASE("localhost and what is below it are this host, and are never asked for") {
  scene s;
  for (const std::string name : {"localhost", "x.localhost"}) {
    const auto to = s.find(name);
    REQUIRE(to.is_set());
    CHECK(s.value(to).addresses.front() == ip_address::from_v4(0x7f000001));
  }
  s.find("notlocalhost");
  CHECK(s.names.asked.size() == 1);
}

TEST_CASE("shut() ends every wait and every question") {
  scene s;
  const auto to = s.find("a.test");
  s.cache.shut();
  CHECK(s.value(to).what == status::failed);
  CHECK(s.names.open == 0);
  CHECK(s.find("b.test").is_set());
}

TEST_CASE("the cache is bounded") {
  scene s(5000ms, 10'000);
  for (std::size_t i = 0; i < 2 * name_cache::most_entries; ++i) {
    s.find("n" + std::to_string(i) + ".test");
    s.names.waiting.back()(found(60s));
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < 2 * name_cache::most_entries; ++i)
    kept += s.find("n" + std::to_string(i) + ".test").is_set();
  CHECK(kept == name_cache::most_entries);
}
