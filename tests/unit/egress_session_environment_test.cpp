#include "plugins/egress/session_environment.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <map>

using namespace ccbox::egress;

namespace {

std::map<std::string, std::string> environment(const environment_inputs& in) {
  std::map<std::string, std::string> out;
  for (const auto& one : session_environment(in))
    out[one.name] = one.value;
  return out;
}

environment_inputs usual() {
  return {"127.0.0.1:3128", "127.0.0.1:1080", "", "/run/ccbox/net-connect", all_proxy_mode::socks5h};
}

std::string shell_output(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "re");
  REQUIRE(pipe);
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;)
    out += static_cast<char>(c);
  ::pclose(pipe);
  return out;
}

}  // namespace

TEST_CASE("every client finds its proxy, in both spellings") {
  const auto e = environment(usual());
  for (const auto* name :
       {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "GRPC_PROXY", "npm_config_proxy",
        "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY"})
    CHECK(e.at(name) == "http://127.0.0.1:3128");
  for (const auto* name : {"ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"})
    CHECK(e.at(name) == "socks5h://127.0.0.1:1080");
  for (const auto* name : {"NO_PROXY", "no_proxy", "npm_config_noproxy"})
    CHECK(e.at(name) == "localhost,127.0.0.1,::1");
  CHECK(e.at("RSYNC_PROXY") == "127.0.0.1:3128");
  CHECK(e.at("NODE_USE_ENV_PROXY") == "1");
  CHECK(e.at("CLOUDSDK_PROXY_TYPE") == "http");
  CHECK(e.at("CLOUDSDK_PROXY_PORT") == "3128");
  CHECK(e.at("DO_NOT_TRACK") == "1");
  CHECK_FALSE(e.contains("GIT_CONFIG_COUNT"));
  CHECK_FALSE(e.contains("CCBOX_PROXY_TOKEN"));
}

TEST_CASE("Java's options are appended to those that are there") {
  for (const auto& one : session_environment(usual())) {
    CHECK(one.append == (one.name == "JAVA_TOOL_OPTIONS"));
    if (one.append)
      CHECK(one.value.find("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128") != std::string::npos);
  }
}

TEST_CASE("all_proxy can be http or off, for clients that know no socks5h") {
  auto in = usual();
  in.all_proxy = all_proxy_mode::http;
  CHECK(environment(in).at("ALL_PROXY") == "http://127.0.0.1:3128");
  in.all_proxy = all_proxy_mode::off;
  CHECK_FALSE(environment(in).contains("ALL_PROXY"));
  CHECK_FALSE(environment(in).contains("all_proxy"));
}

TEST_CASE("the token is in the URLs and in the helper's variable, not in the helper's arguments") {
  auto in = usual();
  in.token = "0123";
  const auto e = environment(in);
  CHECK(e.at("https_proxy") == "http://ccbox:0123@127.0.0.1:3128");
  CHECK(e.at("ALL_PROXY") == "socks5h://ccbox:0123@127.0.0.1:1080");
  CHECK(e.at("CCBOX_PROXY_TOKEN") == "ccbox:0123");
  CHECK(e.at("GIT_CONFIG_KEY_0") == "http.proxyAuthMethod");
  CHECK(e.at("GIT_SSH_COMMAND").find("0123") == std::string::npos);
}

TEST_CASE("ssh gets its proxy command whole, whatever the helper's path holds") {
  CHECK(environment(usual()).at("GIT_SSH_COMMAND") ==
        "ssh -o ControlMaster=no -o ControlPath=none -o 'ProxyCommand=/run/ccbox/net-connect --proxy "
        "127.0.0.1:1080 %h %p'");
  auto in = usual();
  in.net_connect = "/opt/it's 100%/net connect";
  // git hands the command to a shell: the first shell takes one layer of quotes off, ssh the %%, the second
  // the rest.
  const auto command = environment(in).at("GIT_SSH_COMMAND");
  const auto option = shell_output("set -- " + command + "; printf %s \"$7\"");
  CHECK(option == "ProxyCommand='/opt/it'\\''s 100%%/net connect' --proxy 127.0.0.1:1080 %h %p");
  const auto after_ssh =
      option.substr(13, option.find("%%") - 13) + "%" + option.substr(option.find("%%") + 2);
  CHECK(shell_output("set -- " + after_ssh + "; printf %s \"$1\"") == in.net_connect);
  in.net_connect.clear();
  CHECK_FALSE(environment(in).contains("GIT_SSH_COMMAND"));
  CHECK_FALSE(environment(in).contains("CARGO_NET_GIT_FETCH_WITH_CLI"));
}
