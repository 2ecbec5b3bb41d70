#include "client_tools.hpp"

#include <algorithm>

namespace ccbox {

const std::vector<client_tool>& client_tools() {
  static const std::vector<client_tool> tools{
      {"curl", "http and https", ""},
      {"wget", "http and https", ""},
      {"git", "https, and ssh by GIT_SSH_COMMAND",
       "git:// has no way through a proxy: git config --global url.https://HOST/.insteadOf git://HOST/"},
      {"ssh", "inside git",
       "alone, ssh, scp and rsync need -o ProxyCommand='/run/ccbox/bin/net-connect %h %p'"},
      {"rsync", "rsync:// by RSYNC_PROXY", "over ssh as ssh does"},
      {"python3", "urllib and requests; raw sockets and http.client know no proxy", ""},
      {"pip", "https", ""},
      {"pip3", "https", ""},
      {"uv", "https", ""},
      {"node", "npm; fetch from 22.21 and 24 on, by NODE_USE_ENV_PROXY",
       "an older node's fetch and https know no proxy"},
      {"npm", "https and http", ""},
      {"yarn", "https", ""},
      {"pnpm", "https", ""},
      {"bun", "https", ""},
      {"deno", "https", ""},
      {"cargo", "https, and ssh by the program git", ""},
      {"rustup", "https", ""},
      {"go", "https", ""},
      {"java", "http and https by JAVA_TOOL_OPTIONS, which it announces on standard error",
       "a runtime made by jlink without that variable knows no proxy"},
      {"mvn", "https, as java does", ""},
      {"gradle", "https, as java does", ""},
      {"gem", "https", ""},
      {"bundle", "https", ""},
      {"composer", "https", ""},
      {"perl", "HTTP::Tiny and LWP", ""},
      {"apt-get", "http and https", ""},
      {"gh", "https", ""},
      {"terraform", "https", ""},
      {"kubectl", "https", ""},
      {"gcloud", "https by CLOUDSDK_PROXY_*", ""},
      {"bazel", "https; its remote caches by GRPC_PROXY", ""},
      {"openssl", "nothing by itself", "s_client needs -proxy with the address of HTTP_PROXY"},
      {"psql", "nothing", "it knows no proxy: a database must be reached by a tunnel of net-connect"},
      {"docker", "nothing", "its daemon works outside of the enclosure and is not there inside"},
  };
  return tools;
}

std::string all_proxy_caveat(const egress_config& config) {
  const auto set = std::find_if(config.options.begin(), config.options.end(),
                                [](const auto& option) { return option.first == "all_proxy"; });
  if (set != config.options.end() && set->second != "socks5h") return {};
  return "Python SDKs on httpx (OpenAI's, Anthropic's) refuse ALL_PROXY=socks5h: for them write `all_proxy: "
         "http` into " +
         quoted(config.file);
}

}  // namespace ccbox
