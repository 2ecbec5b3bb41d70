#include "net_connect/net_connect.hpp"

#include "commands.hpp"
#include "output.hpp"

namespace ccbox {

int net_connect_command(const words& arguments) {
  std::optional<std::string> proxy;
  option_parser parser(
      "net-connect", "[--proxy IP:PORT] HOST PORT",
      "Joins standard input and output to HOST:PORT through a SOCKS5 proxy, the one of --proxy or else of "
      "ALL_PROXY or HTTP_PROXY: a ProxyCommand for ssh. Exit code 1: allowed but not reachable, 2: "
      "refused by the session's rules.",
      word_form::operands);
  parser.value("--proxy", proxy, "IP:PORT", "The proxy; its credentials come from CCBOX_PROXY_TOKEN");
  parsed p =
      parse_or_report(parser, arguments, {{"HOST", "PORT"}, false, "ccbox net-connect example.com 22"});
  if (p.finished) return p.exit_code;
  words all{"ccbox: net-connect"};
  if (proxy) all.insert(all.end(), {"--proxy", *proxy});
  all.insert(all.end(), {"--", p.rest[0], p.rest[1]});
  std::vector<char*> argv;
  for (auto& word : all)
    argv.push_back(word.data());
  return net_connect(static_cast<int>(argv.size()), argv.data());
}

}  // namespace ccbox
