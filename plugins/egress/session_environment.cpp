#include "session_environment.hpp"

namespace ccbox::egress {
namespace {

struct host_and_port {
  std::string host, port;
};

host_and_port split(const std::string& address) {
  const auto colon = address.rfind(':');
  return {address.substr(0, colon), address.substr(colon + 1)};
}

std::string ssh_command(const environment_inputs& in) {
  // ssh gives the command to a shell after replacing % sequences, and git gives the whole to another shell.
  std::string helper;
  for (const char c : in.net_connect)
    helper.append(c == '%' ? 2 : 1, c);
  const auto proxy_command = shell_word(helper) + " --proxy " + in.socks + " %h %p";
  return "ssh -o ControlMaster=no -o ControlPath=none -o " + shell_word("ProxyCommand=" + proxy_command);
}

std::string java_options(const environment_inputs& in) {
  const auto [host, port] = split(in.http);
  std::string out;
  for (const std::string scheme : {"http", "https"})
    out += "-D" + scheme + ".proxyHost=" + host + " -D" + scheme + ".proxyPort=" + port + " ";
  return out + "-Dhttp.nonProxyHosts=localhost|127.*|[::1]";
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+:,@%=";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return std::string(text);
  std::string out = "'";
  for (const char c : text)
    c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

std::vector<environment_entry> session_environment(const environment_inputs& in) {
  std::vector<environment_entry> out;
  const auto set = [&](std::initializer_list<const char*> names, const std::string& value) {
    for (const auto* name : names)
      out.push_back({name, value, false});
  };
  const auto user = in.token.empty() ? std::string() : "ccbox:" + in.token + "@";
  const auto http = "http://" + user + in.http;
  const auto socks = "socks5h://" + user + in.socks;

  set({"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}, http);
  if (in.all_proxy != all_proxy_mode::off) {
    const auto& all = in.all_proxy == all_proxy_mode::http ? http : socks;
    set({"ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"}, all);
  }
  set({"NO_PROXY", "no_proxy"}, "localhost,127.0.0.1,::1");
  set({"GRPC_PROXY", "grpc_proxy"}, http);
  set({"RSYNC_PROXY"}, user + in.http);
  set({"NODE_USE_ENV_PROXY"}, "1");
  set({"npm_config_proxy", "npm_config_https_proxy"}, http);
  set({"npm_config_noproxy"}, "localhost,127.0.0.1,::1");
  set({"YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY", "PIP_PROXY"}, http);
  const auto [host, port] = split(in.http);
  set({"CLOUDSDK_PROXY_TYPE"}, "http");
  set({"CLOUDSDK_PROXY_ADDRESS"}, host);
  set({"CLOUDSDK_PROXY_PORT"}, port);
  if (!in.token.empty()) {
    set({"CLOUDSDK_PROXY_USERNAME"}, "ccbox");
    set({"CLOUDSDK_PROXY_PASSWORD"}, in.token);
    set({"CCBOX_PROXY_TOKEN"}, "ccbox:" + in.token);
    set({"GIT_CONFIG_COUNT"}, "1");
    set({"GIT_CONFIG_KEY_0"}, "http.proxyAuthMethod");
    set({"GIT_CONFIG_VALUE_0"}, "basic");
  }
  out.push_back({"JAVA_TOOL_OPTIONS", java_options(in), true});
  if (!in.net_connect.empty()) {
    set({"GIT_SSH_COMMAND"}, ssh_command(in));
    // The git in cargo speaks ssh itself and knows no proxy there; the program git does.
    set({"CARGO_NET_GIT_FETCH_WITH_CLI"}, "true");
  }
  // Tools that report home are refused; these make them stop trying.
  set({"DISABLE_TELEMETRY", "DO_NOT_TRACK", "NEXT_TELEMETRY_DISABLED",
       "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DOTNET_CLI_TELEMETRY_OPTOUT", "HOMEBREW_NO_ANALYTICS"},
      "1");
  return out;
}

}  // namespace ccbox::egress
