// The egress plugin as its host sees it: through the C tables of its file.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "ccbox/plugin.hpp"
#include "support/dns_responder.hpp"
#include "support/run_command.hpp"
#include "support/tcp_origin.hpp"
#include "support/tcp_peer.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace std::chrono_literals;
using plugin::str;

namespace {

using options = std::vector<std::pair<std::string, std::string>>;

std::vector<ccbox_option> table_of(const options& from) {
  std::vector<ccbox_option> out;
  for (const auto& [key, value] : from)
    out.push_back({str(key), str(value)});
  return out;
}

std::size_t count_entries(const char* directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory))
    ++count;
  return count;
}

struct opened {
  ccbox_status status = CCBOX_OK;
  std::string error;
  std::map<std::string, std::string> environment;
  std::string http, socks;
  std::uint16_t http_port() const {
    return static_cast<std::uint16_t>(std::stoi(http.substr(http.rfind(':') + 1)));
  }
};

class loaded {
 public:
  explicit loaded(const options& with = {}) {
    void* file = ::dlopen(CCBOX_TEST_BINARY_DIR "/plugins/egress.so", RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(file, ::dlerror());
    const auto entry = reinterpret_cast<ccbox_plugin_entry>(::dlsym(file, "ccbox_plugin_v1"));
    REQUIRE((entry != nullptr));
    descriptor_ = entry();
    host_.size = sizeof host_;
    host_.ctx = this;
    host_.log = [](void*, ccbox_level, ccbox_str) {};
    host_.emit = [](void* ctx, ccbox_str session, ccbox_str type, ccbox_str json) -> ccbox_status {
      auto& self = *static_cast<loaded*>(ctx);
      const std::lock_guard lock(self.mutex_);
      self.events_.push_back(std::string(plugin::view(session)) + " " + std::string(plugin::view(type)) +
                             " " + std::string(plugin::view(json)));
      return CCBOX_OK;
    };
    const auto table = table_of(with);
    const ccbox_config config = {sizeof config, sizeof(ccbox_option), table.data(), table.size()};
    char bytes[512];
    ccbox_text error = {bytes, sizeof bytes, 0};
    status = descriptor_->create(&host_, &config, &plugin_, &error);
    create_error.assign(bytes, error.length);
    if (status == CCBOX_OK)
      table_ =
          static_cast<const ccbox_egress*>(descriptor_->get_extension(plugin_, str(CCBOX_EGRESS_EXTENSION)));
  }
  ~loaded() {
    if (status == CCBOX_OK) descriptor_->destroy(plugin_);
  }

  opened open(const std::string& id, const std::vector<ccbox_egress_rule>& rules,
              const options& settings = {}, const std::string& helper = "") {
    opened out;
    const auto table = table_of(settings);
    ccbox_egress_request request = {};
    request.size = sizeof request;
    request.rules = rules.data();
    request.rule_count = rules.size();
    request.rule_stride = sizeof(ccbox_egress_rule);
    request.options = table.data();
    request.option_count = table.size();
    request.option_stride = sizeof(ccbox_option);
    request.session_id = str(id);
    request.net_connect = str(helper);
    ccbox_egress_sink sink = {};
    sink.size = sizeof sink;
    sink.ctx = &out;
    sink.endpoint = [](void* ctx, ccbox_listener_kind kind, ccbox_str address) {
      auto& o = *static_cast<opened*>(ctx);
      (kind == CCBOX_LISTENER_HTTP ? o.http : o.socks) = plugin::view(address);
    };
    sink.environment = [](void* ctx, ccbox_str name, ccbox_str value, std::uint32_t) {
      static_cast<opened*>(ctx)->environment[std::string(plugin::view(name))] = plugin::view(value);
    };
    char bytes[512];
    ccbox_text error = {bytes, sizeof bytes, 0};
    out.status = table_->open(plugin_, &request, &sink, &error);
    out.error.assign(bytes, error.length);
    return out;
  }
  void close(const std::string& id) { table_->close(plugin_, str(id)); }

  struct verdict {
    ccbox_status status;
    bool allowed;
    std::string reason, rule, text;
  };
  verdict decide(const std::string& id, const std::string& host, std::uint16_t port) {
    char reason[64], rule[256], text[512], why[256];
    ccbox_egress_decision d = {};
    d.size = sizeof d;
    d.reason = {reason, sizeof reason, 0};
    d.rule = {rule, sizeof rule, 0};
    d.text = {text, sizeof text, 0};
    ccbox_text error = {why, sizeof why, 0};
    const auto s = table_->decide(plugin_, str(id), str(host), port, &d, &error);
    if (s != CCBOX_OK) return {s, false, "", "", std::string(why, error.length)};
    return {s, d.allowed != 0, std::string(reason, d.reason.length), std::string(rule, d.rule.length),
            std::string(text, d.text.length)};
  }
  double counter(const std::string& name) {
    struct wanted {
      std::string name;
      double sum = 0;
    } w{name};
    table_->counters(plugin_, &w, [](void* ctx, ccbox_str n, ccbox_str, double value) {
      auto& self = *static_cast<wanted*>(ctx);
      if (plugin::view(n) == self.name) self.sum += value;
    });
    return w.sum;
  }
  ccbox_status check(const ccbox_egress_rule& rule) {
    char bytes[256];
    ccbox_text error = {bytes, sizeof bytes, 0};
    return table_->check_rule(plugin_, &rule, &error);
  }
  std::vector<std::string> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

  ccbox_status status = CCBOX_OK;
  std::string create_error;

 private:
  const ccbox_plugin_descriptor* descriptor_ = nullptr;
  ccbox_host host_ = {};
  ccbox_plugin* plugin_ = nullptr;
  const ccbox_egress* table_ = nullptr;
  std::mutex mutex_;
  std::vector<std::string> events_;
};

ccbox_egress_rule rule(ccbox_egress_action action, const std::string& pattern) {
  return {action, 0, str(pattern), str("test"), str("why")};
}

std::string connect(std::uint16_t port, const std::string& authority) {
  auto client = test::tcp_peer::connect(port);
  client.send("CONNECT " + authority + " HTTP/1.1\r\n\r\n");
  return client.read_until("\r\n\r\n");
}

}  // namespace

TEST_CASE("two sessions have their own rules, ports and events") {
  test::dns_responder dns;
  dns.set("a.test", {{"127.0.0.1"}});
  test::tcp_origin origin([](test::tcp_peer& peer) { peer.read_all(); });
  const auto port = ":" + std::to_string(origin.port());
  const auto allowed = "a.test" + port;
  loaded p(options{{"resolver", "127.0.0.1:" + std::to_string(dns.port())}});
  REQUIRE(p.status == CCBOX_OK);
  const auto one =
      p.open("one", {rule(CCBOX_EGRESS_ALLOW, allowed), rule(CCBOX_EGRESS_RESOLVED, "127.0.0.0/8")});
  const auto two = p.open("two", {});
  REQUIRE(one.status == CCBOX_OK);
  REQUIRE(two.status == CCBOX_OK);
  CHECK(one.http != two.http);
  CHECK(connect(one.http_port(), allowed).find(" 200 ") != std::string::npos);
  CHECK(connect(two.http_port(), allowed).find(" 403 ") != std::string::npos);
  REQUIRE(test::eventually([&] { return !p.events().empty(); }));
  CHECK(p.events().size() == 1);
  CHECK(p.events()[0].find(R"(two denial {"protocol":"connect","host":"a.test")") == 0);
  CHECK(p.counter("ccbox_egress_sessions") == 2);
  CHECK(p.counter("ccbox_egress_denied_total") == 1);
  p.close("one");
  CHECK(test::tcp_peer::connect(one.http_port()).fd() == -1);
  CHECK(connect(two.http_port(), allowed).find(" 403 ") != std::string::npos);
}

TEST_CASE("a session says what its rules say of a host, without a lookup") {
  loaded p;
  REQUIRE(p.open("s", {rule(CCBOX_EGRESS_ALLOW, "*.good.test"), rule(CCBOX_EGRESS_DENY, "bad.good.test")})
              .status == CCBOX_OK);
  const auto good = p.decide("s", "X.GOOD.test.", 443);
  CHECK(good.allowed);
  CHECK(good.rule.find("*.good.test") == 0);
  CHECK(p.decide("s", "bad.good.test", 443).reason == "blocked-by-denylist");
  CHECK(p.decide("s", "other.test", 443).reason == "blocked-by-allowlist");
  CHECK(p.decide("s", "x.good.test", 8080).reason == "port");
  CHECK(p.decide("s", "a b", 443).reason == "malformed");
  CHECK(p.decide("unknown", "x.good.test", 443).status == CCBOX_INVALID);
}

TEST_CASE("bad options, rules and ids are refused by name and start nothing") {
  CHECK(loaded(options{{"auth", "maybe"}}).status == CCBOX_INVALID);
  CHECK(loaded(options{{"resolver", "dns.test:53"}}).status == CCBOX_INVALID);
  CHECK(loaded(options{{"decision_log", "/proc/no/such"}}).create_error.find("/proc/no/such") !=
        std::string::npos);
  loaded p;
  CHECK(p.open("", {}).status == CCBOX_INVALID);
  const auto typo = p.open("s", {}, {{"max_tunels", "1"}});
  CHECK(typo.status == CCBOX_INVALID);
  CHECK(typo.error.find("max_tunels") != std::string::npos);
  CHECK(p.open("s", {}, {{"sni", "perhaps"}}).status == CCBOX_INVALID);
  CHECK(p.open("s", {}, {{"upstream", "https://x:1"}}).status == CCBOX_INVALID);
  const auto dead = p.open("s", {rule(CCBOX_EGRESS_ALLOW, "*.com")});
  CHECK(dead.status == CCBOX_INVALID);
  CHECK(dead.error.find("*.com") != std::string::npos);
  CHECK(p.check(rule(CCBOX_EGRESS_ALLOW, "a b")) == CCBOX_INVALID);
  CHECK(p.check(rule(CCBOX_EGRESS_ALLOW, "a.test")) == CCBOX_OK);
  CHECK(p.check(rule(99, "a.test")) == CCBOX_INVALID);
  REQUIRE(p.open("s", {}).status == CCBOX_OK);
  CHECK(p.open("s", {}).status == CCBOX_INVALID);
  p.close("s");
  CHECK(p.open("s", {}).status == CCBOX_OK);
  p.close("never opened");
}

TEST_CASE("the environment carries the token; argv of the helper does not") {
  loaded p(options{{"auth", "token"}});
  const auto s = p.open("s", {}, {}, "/opt/it's here/net connect");
  REQUIRE(s.status == CCBOX_OK);
  const auto token = s.environment.at("CCBOX_PROXY_TOKEN").substr(6);
  CHECK(token.size() == 32);
  CHECK(s.environment.at("https_proxy") == "http://ccbox:" + token + "@" + s.http);
  CHECK(s.environment.at("ALL_PROXY") == "socks5h://ccbox:" + token + "@" + s.socks);
  CHECK(s.environment.at("NO_PROXY") == "localhost,127.0.0.1,::1");
  CHECK(s.environment.at("GIT_SSH_COMMAND").find(token) == std::string::npos);
  CHECK(connect(s.http_port(), "a.test:443").find(" 407 ") != std::string::npos);
}

TEST_CASE("decisions are logged as JSON lines") {
  const test::temporary_directory directory;
  const auto file = directory.path() + "/decisions";
  {
    loaded p(options{{"decision_log", file}});
    const auto s = p.open("s", {});
    connect(s.http_port(), "a.test:443");
    p.close("s");
  }
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  CHECK(
      text.str().find(R"("session":"s","protocol":"connect","host":"a.test","port":443,"decision":"deny")") !=
      std::string::npos);
  CHECK(text.str().back() == '\n');
}

TEST_CASE("200 sessions at once serve their own, and leave nothing when they are closed") {
  test::dns_responder dns;
  test::tcp_origin origin([](test::tcp_peer& peer) { peer.read_all(); });
  const auto before = count_entries("/proc/self/fd");
  const auto threads = count_entries("/proc/self/task");
  {
    loaded p(options{{"resolver", "127.0.0.1:" + std::to_string(dns.port())}, {"threads", "2"}});
    std::vector<opened> sessions;
    for (int i = 0; i < 200; ++i) {
      const auto name = "s" + std::to_string(i) + ".test";
      dns.set(name, {{"127.0.0.1"}});
      const auto pattern = name + ":" + std::to_string(origin.port());
      sessions.push_back(
          p.open(name, {rule(CCBOX_EGRESS_ALLOW, pattern), rule(CCBOX_EGRESS_RESOLVED, "127.0.0.0/8")}));
      REQUIRE(sessions.back().status == CCBOX_OK);
    }
    for (int i = 0; i < 200; ++i) {
      const auto port = ":" + std::to_string(origin.port());
      const auto own = "s" + std::to_string(i) + ".test" + port;
      const auto other = "s" + std::to_string((i + 1) % 200) + ".test" + port;
      const auto at = sessions[static_cast<std::size_t>(i)].http_port();
      CHECK(connect(at, own).find(" 200 ") != std::string::npos);
      CHECK(connect(at, other).find(" 403 ") != std::string::npos);
    }
    for (int i = 0; i < 200; ++i)
      p.close("s" + std::to_string(i) + ".test");
    CHECK(test::eventually([&] { return p.counter("ccbox_egress_sessions") == 0; }));
  }
  CHECK(test::eventually([&] { return count_entries("/proc/self/task") == threads; }));
  // The origin's own handle of each connection is the test's.
  CHECK(test::eventually([&] { return count_entries("/proc/self/fd") <= before + origin.connections(); }));
}
