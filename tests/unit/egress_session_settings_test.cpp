#include "plugins/egress/session_settings.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "plugins/egress/access_token.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::egress;

namespace {

using texts = std::vector<std::pair<std::string, std::string>>;

session_settings read(const texts& from) {
  std::vector<ccbox_option> table;
  for (const auto& [key, value] : from)
    table.push_back({plugin::str(key), plugin::str(value)});
  const ccbox_config config = {sizeof config, sizeof(ccbox_option), table.data(), table.size()};
  plugin::options options(&config);
  auto out = session_settings::read(options);
  options.refuse_unknown();
  return out;
}

std::string refusal(const texts& from) {
  try {
    read(from);
  } catch (const plugin::failure& e) {
    CHECK(e.status() == CCBOX_INVALID);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("without settings the safe ones hold") {
  const auto s = read({});
  CHECK(s.sni == sni_mode::enforce);
  CHECK(s.all_proxy == all_proxy_mode::socks5h);
  CHECK_FALSE(s.upstream);
  CHECK(s.max_tunnels == 256);
  CHECK(s.head_timeout.count() == 10'000);
}

TEST_CASE("every setting of the configuration is read") {
  const auto s = read({{"all_proxy", "http"},
                       {"sni", "log"},
                       {"upstream", "http://proxy.corp.test:3128/"},
                       {"max_tunnels", "1"},
                       {"max_pending", "2"},
                       {"connect_timeout_ms", "3"},
                       {"head_timeout_ms", "4"},
                       {"idle_timeout_ms", "5"},
                       {"life_limit_ms", "6"},
                       {"resolve_timeout_ms", "7"}});
  CHECK(s.all_proxy == all_proxy_mode::http);
  CHECK(s.sni == sni_mode::log);
  REQUIRE(s.upstream);
  CHECK(authority_text(s.upstream->at) == "proxy.corp.test:3128");
  CHECK(s.max_tunnels == 1);
  CHECK(s.max_pending == 2);
  CHECK(s.connect_timeout.count() == 3);
  CHECK(s.head_timeout.count() == 4);
  CHECK(s.idle_timeout.count() == 5);
  CHECK(s.life_limit.count() == 6);
  CHECK(s.resolve_timeout.count() == 7);
}

TEST_CASE("values out of range, misspelt keys and other schemes are refused by name") {
  CHECK(refusal({{"max_tunnels", "0"}}).find("max_tunnels") != std::string::npos);
  CHECK(refusal({{"idle_timeout_ms", "-1"}}).find("idle_timeout_ms") != std::string::npos);
  CHECK(refusal({{"idle_timeout", "1"}}).find("idle_timeout") != std::string::npos);
  CHECK(refusal({{"upstream", "socks5://p:1"}}).find("http://host:port") != std::string::npos);
  CHECK(refusal({{"upstream", "http://p"}}).find("http://host:port") != std::string::npos);
  CHECK(refusal({{"upstream_credentials_file", "/x"}}).find("upstream is not") != std::string::npos);
  const auto inline_password = refusal({{"upstream", "http://u:secret@p:1"}});
  CHECK(inline_password.find("upstream_credentials_file") != std::string::npos);
  CHECK(inline_password.find("secret") == std::string::npos);
}

TEST_CASE("credentials come from a file that is its owner's alone") {
  const test::temporary_directory directory;
  const auto file = directory.write("credentials", "user:pass word\n");
  const texts with = {{"upstream", "http://p.test:1"}, {"upstream_credentials_file", file}};
  REQUIRE(::chmod(file.c_str(), 0644) == 0);
  CHECK(refusal(with).find("chmod 600") != std::string::npos);
  CHECK(refusal(with).find("pass word") == std::string::npos);
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  CHECK(read(with).upstream->authorization == "Basic dXNlcjpwYXNzIHdvcmQ=");
  REQUIRE(::chmod(directory.write("credentials", "nothing").c_str(), 0600) == 0);
  CHECK(refusal(with).find("user:password") != std::string::npos);
}

TEST_CASE("base64 of every length") {
  CHECK(basic_authorization("") == "Basic ");
  CHECK(basic_authorization("f") == "Basic Zg==");
  CHECK(basic_authorization("fo") == "Basic Zm8=");
  CHECK(basic_authorization("foo") == "Basic Zm9v");
  CHECK(basic_authorization("\xff\xfe\xfd") == "Basic //79");
}

TEST_CASE("a token is 32 hex digits, another each time, and accepts only itself") {
  const auto one = access_token::random(), two = access_token::random();
  CHECK(one.hex().size() == 32);
  CHECK(one.hex() != two.hex());
  CHECK(one.accepts(basic_authorization("ccbox:" + one.hex())));
  auto lower = basic_authorization("ccbox:" + one.hex());
  lower[0] = 'b';
  CHECK(one.accepts(lower));
  CHECK_FALSE(one.accepts(basic_authorization("ccbox:" + two.hex())));
  CHECK_FALSE(one.accepts(""));
  CHECK_FALSE(one.accepts("Basic"));
  CHECK(access_token().accepts(""));
}
