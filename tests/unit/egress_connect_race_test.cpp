#include "plugins/egress/connect_race.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "support/egress_loop.hpp"
#include "unique_fd.hpp"

using namespace ccbox::egress;
using namespace std::chrono_literals;
using kind = dial_failure::kind;

namespace {

constexpr auto never = std::chrono::milliseconds(3'600'000);

// Connections that become what the test says: a Unix socket is writable once its peer has room for it.
struct scene {
  enum class fate { connects, hangs, refused_at_once, breaks };
  ccbox::test::egress_loop loop;
  std::map<std::string, fate> fates;  // others hang
  int errno_at_once = ECONNREFUSED;
  std::vector<std::string> begun;
  std::map<std::string, ccbox::unique_fd> peers;
  std::shared_ptr<connect_race> race;
  eventual<dial_outcome> result{loop.io().executor()};
  bool over = false;

  void start(const std::vector<std::string>& addresses, connect_race::limits limits = {never, never}) {
    std::vector<ip_address> parsed;
    for (const auto& one : addresses)
      parsed.push_back(*parse_ip_address(one));
    race = std::make_shared<connect_race>(loop.io(), parsed, 443, limits,
                                          [this](const ip_address& to, std::uint16_t port) {
                                            CHECK(port == 443);
                                            return begin(to_string(to));
                                          });
    race->start(result);
    loop.settle();
  }
  int begin(const std::string& address) {
    begun.push_back(address);
    const auto known = fates.find(address);
    const auto what = known == fates.end() ? fate::hangs : known->second;
    if (what == fate::refused_at_once) {
      errno = errno_at_once;
      return -1;
    }
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const std::string filling(65536, 'x');
    while (what != fate::connects && ::send(ends[0], filling.data(), filling.size(), MSG_NOSIGNAL) > 0) {
    }
    peers[address].reset(ends[1]);
    if (what == fate::breaks) peers[address].reset();  // unread bytes: a reset
    return ends[0];
  }
  // The connection to it is made now.
  void connect(const std::string& address) {
    std::string bytes(1 << 20, ' ');
    while (::recv(peers.at(address).get(), bytes.data(), bytes.size(), 0) > 0) {
    }
  }
  bool is_open(const std::string& address) {
    std::string bytes(1 << 20, ' ');
    ssize_t n = 0;
    while ((n = ::recv(peers.at(address).get(), bytes.data(), bytes.size(), 0)) > 0) {
    }
    return n < 0 && errno == EAGAIN;
  }
  dial_outcome outcome() {
    loop.run_until([&] { return result.is_set(); });
    return loop.run(result.get());
  }
  kind failure() {
    auto ended = outcome();
    REQUIRE(std::holds_alternative<dial_failure>(ended));
    return std::get<dial_failure>(ended).what;
  }
  // To which address the winner leads.
  std::string winner() {
    auto ended = outcome();
    REQUIRE(std::holds_alternative<dialled>(ended));
    auto& socket = std::get<dialled>(ended).socket;
    REQUIRE(::send(socket.native_handle(), "!", 1, MSG_NOSIGNAL) == 1);
    for (auto& [address, peer] : peers) {
      char byte = 0;
      if (peer && ::recv(peer.get(), &byte, 1, MSG_PEEK) == 1 && byte == '!') return address;
    }
    return {};
  }
};

using fate = scene::fate;
using names = std::vector<std::string>;

}  // namespace

TEST_CASE("the first address that answers wins and no other is tried") {
  scene s;
  s.fates["192.0.2.1"] = fate::connects;
  s.start({"192.0.2.1", "192.0.2.2"});
  CHECK(s.winner() == "192.0.2.1");
  CHECK(s.begun == names{"192.0.2.1"});
}

TEST_CASE("the next address waits for the first, until it has failed") {
  scene s;
  s.fates = {{"192.0.2.1", fate::breaks}, {"192.0.2.3", fate::connects}};
  s.start({"192.0.2.1", "192.0.2.2", "192.0.2.3"});
  s.loop.run_until([&] { return s.begun.size() == 2; });
  s.loop.settle();
  CHECK(s.begun == names{"192.0.2.1", "192.0.2.2"});
  CHECK_FALSE(s.result.is_set());
  s.connect("192.0.2.2");
  CHECK(s.winner() == "192.0.2.2");
}

TEST_CASE("an address that is refused at once costs no wait") {
  scene s;
  s.fates = {{"192.0.2.1", fate::refused_at_once}, {"192.0.2.2", fate::connects}};
  s.start({"192.0.2.1", "192.0.2.2"});
  CHECK(s.winner() == "192.0.2.2");
}

TEST_CASE("the next address is tried beside one that is slow, and the first connection closes the others") {
  scene s;
  s.start({"192.0.2.1", "192.0.2.2", "192.0.2.3"}, {1ms, never});
  s.loop.run_until([&] { return s.begun.size() == 3; });
  CHECK(s.begun == names{"192.0.2.1", "192.0.2.2", "192.0.2.3"});
  CHECK_FALSE(s.result.is_set());
  s.connect("192.0.2.2");
  CHECK(s.winner() == "192.0.2.2");
  CHECK_FALSE(s.is_open("192.0.2.1"));
  CHECK_FALSE(s.is_open("192.0.2.3"));
}

TEST_CASE("the families take turns, beginning with that of the first address") {
  scene s;
  s.start({"2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1"}, {1ms, never});
  s.loop.run_until([&] { return s.begun.size() == 4; });
  CHECK(s.begun == names{"2001:db8::1", "192.0.2.1", "2001:db8::2", "2001:db8::3"});
  s.race->cancel();
}

TEST_CASE("of very many addresses only the first ones are tried") {
  scene s;
  s.errno_at_once = EHOSTUNREACH;
  names many;
  for (int i = 0; i < 200; ++i) {
    many.push_back("192.0.2." + std::to_string(i));
    s.fates[many.back()] = fate::refused_at_once;
  }
  s.start(many);
  CHECK(s.failure() == kind::host_unreachable);
  CHECK(s.begun == names(many.begin(), many.begin() + connect_race::most_addresses));
}

TEST_CASE("the limit of the whole race ends it, and every attempt with it") {
  scene s;
  s.start({"192.0.2.1", "192.0.2.2"}, {1ms, 20ms});
  CHECK(s.failure() == kind::timed_out);
  for (const auto& [address, peer] : s.peers)
    CHECK_FALSE(s.is_open(address));
}

TEST_CASE("a race that is called off says so once, and closes what it began") {
  scene s;
  s.start({"192.0.2.1", "192.0.2.2"});
  s.race->cancel();
  CHECK(s.failure() == kind::cancelled);
  CHECK_FALSE(s.is_open("192.0.2.1"));
  s.race->cancel();
  CHECK(s.begun.size() == 1);
}

TEST_CASE("a host that answered says more than a family that is not there") {
  scene s;
  s.fates = {{"2001:db8::1", fate::refused_at_once}, {"192.0.2.1", fate::breaks}};
  s.errno_at_once = ENETUNREACH;
  s.start({"2001:db8::1", "192.0.2.1"});
  CHECK(s.failure() == kind::connection_refused);

  scene other;
  other.fates = {{"2001:db8::1", fate::refused_at_once}, {"192.0.2.1", fate::breaks}};
  other.errno_at_once = ENETUNREACH;
  other.start({"192.0.2.1", "2001:db8::1"});
  CHECK(other.failure() == kind::connection_refused);
}

TEST_CASE("a race without addresses has failed, and the want of descriptors is told as such") {
  scene none;
  none.start({});
  CHECK(none.failure() == kind::failed);
  scene full;
  full.fates["192.0.2.1"] = fate::refused_at_once;
  full.errno_at_once = EMFILE;
  full.start({"192.0.2.1"});
  CHECK(full.failure() == kind::no_resources);
}
