// The whole way: a command in an enclosure, its proxies, a server on the host.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <fstream>
#include <thread>

#include "cli_support.hpp"
#include "support/listening_socket.hpp"
#include "support/sanitizer.hpp"
#include "unique_fd.hpp"

using namespace ccbox;
using namespace ccbox::test;
namespace json = boost::json;

namespace {

// Answers every HTTP request on one connection at a time with "hello", and anything else with its own bytes.
class host_server {
 public:
  host_server() {
    listening_socket made;
    socket_ = std::move(made.fd);
    port_ = made.port;
    thread_ = std::thread([this] {
      for (;;) {
        const unique_fd peer(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer) return;
        ++accepted_;
        serve(peer.get());
      }
    });
  }
  ~host_server() {
    shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string port() const { return std::to_string(port_); }
  std::string address() const { return "127.0.0.1:" + port(); }
  int accepted() const { return accepted_; }

 private:
  static void serve(int peer) {
    std::string heard;
    char buffer[4096];
    for (ssize_t n; (n = recv(peer, buffer, sizeof buffer, 0)) > 0;) {
      heard.append(buffer, static_cast<std::size_t>(n));
      if (!heard.starts_with("GET ")) {
        send(peer, buffer, static_cast<std::size_t>(n), MSG_NOSIGNAL);
        continue;
      }
      if (heard.find("\r\n\r\n") == heard.npos) continue;
      const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
      send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
      return;
    }
  }

  unique_fd socket_;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
};

// The shipped rules with one setting changed.
std::string rules_with(const temporary_directory& directory, const std::string& from, const std::string& to) {
  std::string text = read_file(CCBOX_TEST_SOURCE_DIR "/config/egress.yaml");
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  return directory.write("egress.yaml", text.replace(at, from.size(), to));
}

struct scene {
  temporary_directory dir;
  host_server server;
  std::string work = dir.path() + "/work";

  scene() { dir.write("work/x", ""); }
  finished run_in(const arguments& options, const std::string& script) const {
    run_options at;
    at.cwd = work;
    return run(arguments{ccbox_program(), "run", "--env", no_leak_search} + options +
                   arguments{"--", "bash", "-c", script},
               at);
  }
  arguments allowed() const { return {"--allow-domain", server.address()}; }
  // curl takes no proxy for loopback addresses by itself, which is right for servers inside.
  std::string curl(const std::string& more = "") const {
    return "curl -sS --max-time 20 --noproxy '' " + more + " http://" + server.address() + "/";
  }
};

}  // namespace

TEST_CASE("the shipped rules are rules, and they say what the specification says") {
  const auto check = [](const std::string& domain) {
    return run({ccbox_program(), "check", "domain", domain}).code;
  };
  for (const std::string allowed : {"api.anthropic.com", "bedrock.us-east-1.amazonaws.com", "github.com:22",
                                    "packages.debian.org", "models.dev"}) {
    CAPTURE(allowed);
    CHECK(check(allowed) == 0);
  }
  for (const std::string refused :
       {"bedrock.evil.attacker.amazonaws.com", "api.github.com", "statsig.anthropic.com",
        "metadata.google.internal", "169.254.169.254:80", "api.anthropic.com:8443", "debian.org.evil.test",
        "example.com", "api.linear.app"}) {
    CAPTURE(refused);
    CHECK(check(refused) == 1);
  }
  CHECK_FALSE(contains(run({ccbox_program(), "check", "domain", "models.dev"}).out, "refused"));
  CHECK(run({ccbox_program(), "check", "domain", "api.linear.app", "--ticketing", "linear"}).code == 0);
  CHECK(run({ccbox_program(), "check", "domain", "metadata.google.internal", "--allow-domain",
             "metadata.google.internal"})
            .code == 125);
}

TEST_CASE("a command reaches what is allowed, over both of its proxies, and IPv6 to them") {
  scene s;
  const auto done = s.run_in(s.allowed() + arguments{"--quiet"},
                             s.curl("-x \"$HTTP_PROXY\"") + "; echo; " + s.curl("-x \"$ALL_PROXY\""));
  CHECK(done.out == "hello\nhello");
  CHECK(done.err.empty());
  CHECK(s.server.accepted() == 2);
  if (!exists("/proc/net/if_inet6") || read_file("/proc/net/if_inet6").empty()) return;
  const auto v6 = s.run_in(s.allowed(), s.curl("-x \"${HTTP_PROXY/127.0.0.1/[::1]}\""));
  CHECK(v6.out == "hello");
}

TEST_CASE("a command does not reach what is not allowed, and hears why; so does who started it") {
  scene s;
  const auto done = s.run_in({}, s.curl("-x \"$HTTP_PROXY\" -o /dev/stderr -w '%{http_code}'"));
  CHECK(done.out == "403");
  CHECK(contains(done.err, "ccbox: refused a connection to " + s.server.address() + ": ip-literal"));
  CHECK(s.server.accepted() == 0);
  const auto direct =
      s.run_in({"--quiet"}, "curl -sS --max-time 5 --noproxy '*' http://" + s.server.address() + "/");
  CHECK(direct.code != 0);
  CHECK(s.server.accepted() == 0);
}

TEST_CASE("with the network off everything is refused, what the spec allows too") {
  scene s;
  const std::string list = "\"egressAllowlist\": [\"" + s.server.address() + "\"]";
  for (const arguments& off :
       {arguments{"--spec-json", "{" + list + "}", "--no-network"},
        arguments{"--spec-json", "{" + list + ", \"networkEnabled\": false}"},
        arguments{"--spec-json", "{" + list + ", \"capabilities\": {\"canAccessNetwork\": false}}"}}) {
    CAPTURE(off[1]);
    const auto done = s.run_in(off + arguments{"--json"}, s.curl("-x \"$HTTP_PROXY\" -o /dev/null"));
    CHECK(s.server.accepted() == 0);
    CHECK(contains(done.out, "\"action\":\"network-outbound\",\"target\":\"" + s.server.address() + "\""));
  }
}

TEST_CASE("an option that allows a destination while the network is off is a contradiction") {
  const temporary_directory work;
  for (const std::string command : {"run", "explain", "wrap", "proxy"}) {
    for (const arguments& wish :
         {arguments{"--allow-domain", "a.test"}, arguments{"--ticketing", "linear"}}) {
      arguments words{ccbox_program(), command, "--no-network"};
      words = words + wish;
      if (command != "proxy") words = words + arguments{"--", "true"};
      const auto done = run(words, in(work));
      CHECK(done.code == 125);
      CHECK_MESSAGE(
          contains(done.err, "ccbox: error: " + wish[0] + " and --no-network contradict each other"),
          done.err);
      CHECK(contains(done.err, "ccbox: hint: "));
    }
  }
  const auto by_spec = [&](const std::string& spec) {
    return run({ccbox_program(), "run", "--spec-json", spec, "--allow-domain", "a.test", "--", "true"},
               in(work))
        .err;
  };
  CHECK(contains(by_spec(R"({"networkEnabled": false})"),
                 "--allow-domain: the spec switches the network off (networkEnabled)"));
  CHECK(contains(by_spec(R"({"capabilities": {"canAccessNetwork": false}})"),
                 "--allow-domain: the spec switches the network off (capabilities.canAccessNetwork)"));
}

TEST_CASE("net-connect gets through where the rules say so, and says why where not") {
  scene s;
  const std::string to = "/run/ccbox/bin/net-connect 127.0.0.1 " + s.server.port();
  const auto done = s.run_in(s.allowed() + arguments{"--quiet"}, "echo ping | " + to);
  CHECK(done.code == 0);
  CHECK(done.out == "ping\n");
  const auto refused = s.run_in({"--quiet"}, to + " </dev/null");
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "refused by the session's rules: "));
  CHECK(contains(refused.err, s.server.address()));
  const auto closed =
      s.run_in({"--quiet", "--allow-domain", "127.0.0.1:1"}, "/run/ccbox/bin/net-connect 127.0.0.1 1");
  CHECK(closed.code == 1);
  CHECK(contains(closed.err, "connection refused"));
}

TEST_CASE("the socat bridge does the same, and leaves nothing when ccbox is killed") {
  scene s;
  const std::string rules = rules_with(s.dir, "bridge: direct", "bridge: socat");
  const arguments bridged{"--egress-config", rules, "--quiet"};
  const auto done =
      s.run_in(s.allowed() + bridged, s.curl("-x \"$HTTP_PROXY\"") + "; " + s.curl("-x \"$ALL_PROXY\""));
  CHECK(done.out == "hellohello");
  CHECK(done.err.empty());

  run_options at;
  at.cwd = s.work;
  auto held = running::start(
      arguments{ccbox_program(), "run"} + s.allowed() + bridged +
          arguments{"--", "bash", "-c",
                    "exec 5<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; echo CONNECTED; sleep 1000"},
      at);
  REQUIRE(held.wait_for("CONNECTED"));
  const auto children = [&held] {
    return read_file("/proc/" + std::to_string(held.pid()) + "/task/" + std::to_string(held.pid()) +
                     "/children");
  };
  std::string socat;
  REQUIRE(eventually([&] {
    std::istringstream pids(children());
    for (std::string pid; pids >> pid;)
      if (read_file("/proc/" + pid + "/comm") == "socat\n") socat = pid;
    return !socat.empty();
  }));
  held.signal(SIGKILL);
  CHECK(held.wait().signalled);
  CHECK(eventually([&] { return read_file("/proc/" + socat + "/comm") != "socat\n"; }));
}

TEST_CASE("many connections of one session at once all get through") {
  scene s;
  const auto done = s.run_in(s.allowed() + arguments{"--quiet"},
                             "for i in $(seq 30); do " + s.curl("-x \"$HTTP_PROXY\"") + " & done; wait");
  std::string all;
  for (int i = 0; i < 30; ++i)
    all += "hello";
  CHECK(done.out == all);
  CHECK(s.server.accepted() == 30);
}

TEST_CASE("proxy alone serves any client of the host") {
  scene s;
  run_options at;
  at.cwd = s.work;
  auto proxy = running::start(arguments{ccbox_program(), "proxy"} + s.allowed(), at);
  REQUIRE(proxy.wait_for("}\n"));
  const auto where = json::parse(proxy.out()).as_object();
  const auto get = [&](const std::string& url) {
    return run({"curl", "-sS", "--max-time", "20", "--noproxy", "", "-o", "/dev/stdout", "-w",
                " %{http_code}", "-x", "http://" + std::string(where.at("http").as_string()), url});
  };
  CHECK(get("http://" + s.server.address() + "/").out == "hello 200");
  CHECK(contains(get("http://127.0.0.1:1/").out, " 403"));
  REQUIRE(proxy.wait_for("\"host\":\"127.0.0.1\""));
  proxy.signal(SIGTERM);
  CHECK(proxy.wait().code == 0);
}

TEST_CASE("backend none has proxies for who names destinations") {
  scene s;
  const auto done = s.run_in(s.allowed() + arguments{"--quiet", "--backend", "none", "--json"},
                             s.curl("-x \"$HTTP_PROXY\""));
  CHECK(contains(done.out, "\"data\":\"hello\""));
}
