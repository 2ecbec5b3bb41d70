// ccbox-net-connect and `ccbox net-connect`, against a SOCKS5 proxy of the test's own.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cli_support.hpp"
#include "support/listening_socket.hpp"
#include "unique_fd.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

const std::string program = CCBOX_TEST_BINARY_DIR "/bin/ccbox-net-connect";

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values)
    out += static_cast<char>(value);
  return out;
}

// Serves connections one after the other, each by a script: what it reads exactly, and what it then sends.
class scripted_proxy {
 public:
  struct step {
    std::size_t reads = 0;  // bytes; until_end: until the end of input
    std::string sends;
  };
  static constexpr std::size_t until_end = ~std::size_t{0};

  explicit scripted_proxy(std::vector<std::vector<step>> connections) {
    listening_socket made;
    socket_ = std::move(made.fd);
    port_ = made.port;
    thread_ = std::thread([this, connections] {
      for (const auto& script : connections)
        serve(script);
    });
  }
  ~scripted_proxy() {
    shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // After the program has ended: all that it said, in all connections.
  std::string heard() {
    shutdown(socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([] {});
    return heard_;
  }

 private:
  void serve(const std::vector<step>& script) {
    const unique_fd peer(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    for (const auto& each : script) {
      std::size_t left = each.reads;
      char byte;
      while (left > 0 && recv(peer.get(), &byte, 1, 0) == 1) {
        heard_ += byte;
        --left;
      }
      send(peer.get(), each.sends.data(), each.sends.size(), MSG_NOSIGNAL);
    }
  }

  unique_fd socket_;
  std::uint16_t port_ = 0;
  std::string heard_;
  std::thread thread_;
};

using step = scripted_proxy::step;
const std::string no_authentication = bytes({5, 0});
const std::string granted = bytes({5, 0, 0, 1, 0, 0, 0, 0, 0, 0});
std::string refusal(int code) {
  return bytes({5, code, 0, 1, 0, 0, 0, 0, 0, 0});
}

// For a target of `host`: greeting, request, then `last`.
std::vector<step> script_for(const std::string& host, const std::string& reply, std::vector<step> last = {}) {
  std::vector<step> out{{3, no_authentication}, {7 + host.size(), reply}};
  out.insert(out.end(), last.begin(), last.end());
  return out;
}

finished connect_through(const std::string& proxy, const std::vector<std::string>& rest,
                         run_options options = {}) {
  return run(std::vector<std::string>{program, "--proxy", proxy} + rest, options);
}

}  // namespace

TEST_CASE("input and output are joined to the destination, and each end of one is an end of the other") {
  scripted_proxy proxy(
      {script_for("git.test", granted + "welcome\n", {{scripted_proxy::until_end, "bye\n"}})});
  run_options options;
  options.input = std::string(300'000, 'x') + "end";
  const auto done = connect_through(proxy.address(), {"git.test", "22"}, options);
  CHECK(done.code == 0);
  CHECK(done.out == "welcome\nbye\n");
  CHECK(done.err.empty());
  CHECK(proxy.heard() ==
        bytes({5, 1, 0}) + bytes({5, 1, 0, 3, 8}) + "git.test" + bytes({0, 22}) + options.input);
}

TEST_CASE("addresses go as addresses, in brackets or not") {
  for (const auto& [word, expected] :
       {std::pair{std::string("192.0.2.7"), bytes({1, 192, 0, 2, 7})},
        {"[2001:db8::1]", bytes({4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})}}) {
    scripted_proxy proxy({{{3, no_authentication}, {5 + expected.size(), granted}}});
    CHECK(connect_through(proxy.address(), {word, "443"}).code == 0);
    CHECK(proxy.heard() == bytes({5, 1, 0, 5, 1, 0}) + expected + bytes({1, 0xbb}));
  }
}

TEST_CASE("a refusal by the rules says so, with the proxy's own explanation where it has one") {
  const std::string text =
      "evil.test:22 is refused: no rule allows it; add --allow-domain\x1b[2J evil.test\nmore";
  scripted_proxy proxy(
      {script_for("evil.test", refusal(2)),
       {{scripted_proxy::until_end,
         "HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-allowlist\r\nContent-Length: " +
             std::to_string(text.size()) + "\r\n\r\n" + text}}});
  const auto done = connect_through(proxy.address(), {"evil.test", "22"});
  CHECK(done.code == 2);
  CHECK(done.err ==
        program +
            ": evil.test:22: refused by the session's rules: evil.test:22 is refused: no rule allows "
            "it; add --allow-domain?[2J evil.test\n");
  CHECK(done.out.empty());
  CHECK(proxy.heard().ends_with("CONNECT evil.test:22 HTTP/1.1\r\nHost: evil.test:22\r\n\r\n"));
}

TEST_CASE("a refusal without an explanation is in words all the same") {
  for (const auto& [code, words] : {std::pair{1, "the proxy could not do it"},
                                    {3, "network unreachable"},
                                    {4, "host unreachable"},
                                    {5, "connection refused"},
                                    {6, "no answer in time"},
                                    {7, "does not know this request"},
                                    {8, "does not take this kind of address"},
                                    {99, "no word for"}}) {
    CAPTURE(code);
    scripted_proxy proxy({script_for("a.test", refusal(code))});
    const auto done = connect_through(proxy.address(), {"a.test", "22"});
    CHECK(done.code == 1);
    CHECK(contains(done.err, "a.test:22: "));
    CHECK(contains(done.err, words));
  }
  scripted_proxy silent({script_for("a.test", refusal(2)), {}});
  const auto done = connect_through(silent.address(), {"a.test", "22"});
  CHECK(done.code == 2);
  CHECK(done.err == program + ": a.test:22: refused by the session's rules\n");
}

TEST_CASE("credentials come from the environment") {
  const std::string wanted = bytes({1, 4}) + "user" + bytes({4}) + "pass";
  scripted_proxy proxy({{{4, bytes({5, 2})}, {wanted.size(), bytes({1, 0})}, {7 + 6, granted}}});
  run_options options;
  options.extra_env = {"CCBOX_PROXY_TOKEN=user:pass"};
  CHECK(connect_through(proxy.address(), {"a.test", "22"}, options).code == 0);
  CHECK(proxy.heard() == bytes({5, 2, 0, 2}) + wanted + bytes({5, 1, 0, 3, 6}) + "a.test" + bytes({0, 22}));

  scripted_proxy strict({{{4, bytes({5, 2})}, {wanted.size(), bytes({1, 1})}}});
  const auto refused = connect_through(strict.address(), {"a.test", "22"}, options);
  CHECK(refused.code == 125);
  CHECK(contains(refused.err, "it did not take the credentials"));

  scripted_proxy asking({{{3, bytes({5, 0xff})}}});
  CHECK(contains(connect_through(asking.address(), {"a.test", "22"}).err, "CCBOX_PROXY_TOKEN is not set"));
}

TEST_CASE("the proxy is the one that the environment names, where --proxy does not") {
  for (const std::string name : {"ALL_PROXY=socks5h://", "HTTP_PROXY=http://"}) {
    scripted_proxy proxy({script_for("a.test", granted)});
    run_options options;
    options.env = {name + proxy.address() + "/"};
    CHECK(run({program, "a.test", "22"}, options).code == 0);
    CHECK(proxy.heard().starts_with(bytes({5, 1, 0})));
  }
  run_options bare;
  bare.env = std::vector<std::string>{};
  const auto nowhere = run({program, "a.test", "22"}, bare);
  CHECK(nowhere.code == 125);
  CHECK(contains(nowhere.err, "there is no proxy: neither ALL_PROXY nor HTTP_PROXY names one"));
}

TEST_CASE("a proxy that speaks something else, or ends early, is named") {
  for (const auto& [script, words] :
       {std::pair{std::vector<step>{{3, "HTTP/1.1 400 Bad Request\r\n\r\n"}}, "no SOCKS5 proxy"},
        {{{3, ""}}, "ended the connection before it had answered"},
        {{{3, no_authentication}, {13, bytes({5, 0})}}, "without a reply"},
        {{{3, no_authentication}, {13, bytes({4, 0, 0, 1})}}, "is no SOCKS5"},
        {{{3, no_authentication}, {13, bytes({5, 0, 0, 9})}}, "no known type"},
        {{{3, no_authentication}, {13, bytes({5, 0, 0, 3, 200}) + "short"}}, "cut short"}}) {
    CAPTURE(words);
    scripted_proxy proxy({script});
    const auto done = connect_through(proxy.address(), {"a.test", "22"});
    CHECK(done.code == 125);
    CHECK(contains(done.err, "the proxy 127.0.0.1:"));
    CHECK(contains(done.err, words));
  }
}

TEST_CASE("nobody listens at the proxy's address, or it is none") {
  CHECK(contains(connect_through("127.0.0.1:1", {"a.test", "22"}).err,
                 "connect to the proxy 127.0.0.1:1: Connection refused"));
  for (const std::string address :
       {"localhost:1080", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":1", ""}) {
    CAPTURE(address);
    const auto done = connect_through(address, {"a.test", "22"});
    CHECK(done.code == 125);
    CHECK(contains(done.err, "is no IP:PORT"));
  }
}

TEST_CASE("wrong words are a usage error") {
  for (const arguments& words : {arguments{},
                                 {"a.test"},
                                 {"a.test", "22", "x"},
                                 {"a.test", "0"},
                                 {"a.test", "65536"},
                                 {"a.test", "ssh"},
                                 {"--unknown", "a.test", "22"},
                                 {"--proxy"}}) {
    const auto done = run(arguments{program} + words);
    CHECK(done.code == 125);
    CHECK(contains(done.err, "usage: net-connect [--proxy IP:PORT] HOST PORT"));
  }
  CHECK(run({program, "--proxy", "127.0.0.1:1", std::string(256, 'a'), "22"}).code == 125);
  CHECK(run({program, "--proxy", "127.0.0.1:1", "", "22"}).code == 125);
}

TEST_CASE("ccbox net-connect is the same") {
  scripted_proxy proxy({script_for("git.test", granted + "welcome\n")});
  const auto done = run({ccbox_program(), "net-connect", "--proxy", proxy.address(), "git.test", "22"});
  CHECK(done.code == 0);
  CHECK(done.out == "welcome\n");
  scripted_proxy strict({script_for("git.test", refusal(5))});
  const auto refused = run({ccbox_program(), "net-connect", "--proxy", strict.address(), "git.test", "22"});
  CHECK(refused.code == 1);
  CHECK(refused.err == "ccbox: net-connect: git.test:22: connection refused\n");
}
