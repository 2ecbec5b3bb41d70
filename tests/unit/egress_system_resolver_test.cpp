#include "plugins/egress/system_resolver.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <resolv.h>

#include <future>

#include "support/egress_loop.hpp"

using namespace ccbox::egress;
using namespace std::chrono_literals;

namespace {

lookup_result one_address(const std::string&) {
  return {lookup_result::status::found, {ip_address::from_v4(0x01020304)}, 1s};
}

}  // namespace

TEST_CASE("an answer of another thread comes on the asker's") {
  ccbox::test::egress_loop loop;
  system_resolver names(one_address);
  std::thread::id where;
  const auto open = names.resolve(loop.io().context(), "a.test", [&](lookup_result result) {
    CHECK(result.addresses.size() == 1);
    where = std::this_thread::get_id();
  });
  const auto work = boost::asio::make_work_guard(loop.io().context());
  loop.run_until([&] { return where != std::thread::id(); });
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("names are asked for as they are, never below a domain of the search list") {
  ccbox::test::egress_loop loop;
  unsigned long options = RES_DNSRCH;
  system_resolver names([&](const std::string& name) {
    options = _res.options;
    return one_address(name);
  });
  bool answered = false;
  const auto open = names.resolve(loop.io().context(), "a.test", [&](lookup_result) { answered = true; });
  const auto work = boost::asio::make_work_guard(loop.io().context());
  loop.run_until([&] { return answered; });
  CHECK((options & (RES_DNSRCH | RES_DEFNAMES)) == 0);
}

TEST_CASE("what is given up is not answered, and not even asked if it was still waiting") {
  ccbox::test::egress_loop loop;
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::atomic<unsigned> asked = 0;
  system_resolver names([&, released](const std::string& name) {
    ++asked;
    released.wait();
    return one_address(name);
  });
  std::vector<std::unique_ptr<lookup>> open;
  for (unsigned i = 0; i < system_resolver::most_threads + 5; ++i)
    open.push_back(
        names.resolve(loop.io().context(), "a.test", [](lookup_result) { FAIL("nobody waits for this"); }));
  while (asked < system_resolver::most_threads)
    std::this_thread::yield();
  open.clear();
  release.set_value();
  bool answered = false;
  const auto last = names.resolve(loop.io().context(), "b.test", [&](lookup_result) { answered = true; });
  const auto work = boost::asio::make_work_guard(loop.io().context());
  loop.run_until([&] { return answered; });
  CHECK(asked == system_resolver::most_threads + 1);
}

TEST_CASE("a resolver with a lookup that hangs can be destroyed in time") {
  ccbox::test::egress_loop loop;
  const auto release = std::make_shared<std::promise<void>>();
  const auto released = release->get_future().share();
  const auto started = std::chrono::steady_clock::now();
  {
    system_resolver names([released](const std::string& name) {
      released.wait();
      return one_address(name);
    });
    const auto open = names.resolve(loop.io().context(), "a.test", [](lookup_result) {});
  }
  CHECK(std::chrono::steady_clock::now() - started < 1s);
  release->set_value();
}

TEST_CASE("the host's own names are found, and names that cannot be are not") {
  const auto local = system_resolver::ask_system("localhost");
  REQUIRE(local.what == lookup_result::status::found);
  CHECK(classify(local.addresses.front()) == address_class::loopback);
  CHECK(system_resolver::ask_system("-.invalid").what != lookup_result::status::found);
}
