// `ccbox proxy`: one proxy pair alone, in the foreground.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <csignal>

#include "commands.hpp"
#include "context.hpp"
#include "option_origins.hpp"
#include "output.hpp"
#include "policy.hpp"
#include "spec_source.hpp"
#include "unique_fd.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

struct bound_listener {
  unique_fd socket;
  std::string address;
};

// An address of the loopback and no other: whoever reaches the proxy may use it.
result<bound_listener> listen_on(const std::string& option, const std::string& word) {
  const auto refuse = [&](std::string_view why) {
    return error{error_code::invalid_argument, option + " " + quoted(word) + ": " + std::string(why),
                 "127.0.0.1:PORT or [::1]:PORT; port 0 lets the system choose"};
  };
  const auto colon = word.rfind(':');
  if (colon == word.npos) return refuse("no port");
  const std::string host = word.substr(0, colon), digits = word.substr(colon + 1);
  if (digits.empty()) return refuse("no port");
  if (digits.size() > 5 || digits.find_first_not_of("0123456789") != digits.npos ||
      std::stoul(digits) > 0xffff)
    return refuse("not a port: 0 to 65535");
  const auto port = static_cast<std::uint16_t>(std::stoul(digits));
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (host == "[::1]") {
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = htons(port);
    size = sizeof v6;
  } else if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1 &&
             (ntohl(v4.sin_addr.s_addr) >> 24) == 127) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
  } else {
    return refuse("not an address of the loopback");
  }
  bound_listener made;
  const int on = 1;
  made.socket.reset(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.socket || ::setsockopt(made.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
      ::bind(made.socket.get(), reinterpret_cast<sockaddr*>(&address), size) < 0 ||
      ::listen(made.socket.get(), 4096) < 0 ||
      ::getsockname(made.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0)
    return system_error("listen on", word, errno,
                        errno == EADDRINUSE
                            ? "another program listens there: end it, choose another port, or "
                              "port 0, which lets the system choose"
                        : errno == EACCES ? "ports below 1024 are root's here: choose a higher one"
                                          : "127.0.0.1:PORT or [::1]:PORT; port 0 lets the system choose");
  made.address =
      host + ":" + std::to_string(ntohs(address.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port));
  return made;
}

// The signals that end it, blocked from before any thread exists.
sigset_t block_end_signals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&ending, number);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

}  // namespace

int proxy_command(const words& arguments) {
  std::vector<std::string> domains, ticketing, http, socks;
  bool no_network = false, github = false;
  config_options config;
  option_parser parser(
      "proxy", "[options]",
      "Runs one proxy pair alone, in the foreground, until SIGINT or SIGTERM. Prints its two addresses "
      "as one line of JSON when it accepts, and every refusal as one on standard error. Anybody on "
      "this host who reaches the addresses may use it.",
      word_form::operands);
  parser.group("Rules");
  parser.list("--allow-domain", domains, "DOMAIN", "Add to the destinations that may be reached");
  parser.list("--ticketing", ticketing, "GROUP", "Allow a ticketing group of the egress file");
  parser.flag("--github", github, "Allow what agents get that may call GitHub's API");
  parser.flag("--no-network", no_network, "Refuse every destination");
  parser.group("Addresses");
  parser.list("--listen-http", http, "IP:PORT",
              "Listen here for HTTP instead of on a port of the system's choice");
  parser.list("--listen-socks", socks, "IP:PORT", "The same for SOCKS");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {{}, false});
  if (p.finished) return p.exit_code;

  if (no_network && (!domains.empty() || !ticketing.empty() || github))
    return report({error_code::invalid_argument,
                   std::string(!domains.empty() ? "--allow-domain"
                               : github         ? "--github"
                                                : "--ticketing") +
                       " and --no-network contradict each other",
                   "with the network off every destination is refused: leave one of them out"});

  const sigset_t ending = block_end_signals();
  sandbox_spec spec = fresh_spec();
  spec.workspace_id = "proxy";
  spec.egress_allowlist = domains;
  spec.network_enabled = !no_network;
  spec.capabilities.call_github_api = github;
  spec.capabilities.call_ticketing = !ticketing.empty();
  if (auto valid = validate(spec); !valid) return report(valid.error());
  auto context = load_context(config, CCBOX_PROBE_QUICK, gather_host_facts());
  if (!context) return report(context.error());
  (*context)->ticketing = ticketing;
  const egress_plugin* plugin = (*context)->plugins->find_egress();
  if (!plugin)
    return report(
        {error_code::unavailable, "no egress plugin is loaded", "`ccbox plugins` says what was loaded"});
  const auto rules = resolve_egress(spec, (*context)->sources());
  if (!rules) return report(rules.error());
  option_origins origins;
  for (std::size_t i = 0; i < domains.size(); ++i)
    origins.add("egressAllowlist[" + std::to_string(i) + "]", "--allow-domain", domains[i]);
  if (auto fine = check_allowlist(*rules, *plugin); !fine) return report(origins.translated(fine.error()));

  egress_request request;
  request.session_id = spec.session_id;
  request.rules = rules->rules;
  request.options = rules->options;
  std::vector<bound_listener> sockets;
  // One kind alone: the plugin needs a listener of each.
  if (http.empty() != socks.empty()) (http.empty() ? http : socks).push_back("127.0.0.1:0");
  for (const auto& [option, kind, list] : {std::tuple{"--listen-http", CCBOX_LISTENER_HTTP, &http},
                                           {"--listen-socks", CCBOX_LISTENER_SOCKS, &socks}}) {
    for (const auto& word : *list) {
      auto made = listen_on(option, word);
      if (!made) return report(made.error());
      request.listeners.push_back(
          {static_cast<ccbox_listener_kind>(kind), made->socket.get(), made->address});
      sockets.push_back(std::move(*made));
    }
  }
  const unsigned events = (*context)->plugins->on_plugin_event(
      [](std::string_view, std::string_view type, std::string_view text) -> ccbox_status {
        if (type == "denial") write_all(STDERR_FILENO, std::string(text) + "\n");
        return CCBOX_OK;
      });
  auto pair = plugin->open(request);
  if (!pair) return report(origins.translated(pair.error()));
  sockets.clear();
  print(json::serialize(json::object{{"http", (*pair)->endpoint(CCBOX_LISTENER_HTTP)},
                                     {"socks", (*pair)->endpoint(CCBOX_LISTENER_SOCKS)}}) +
        "\n");
  int number = 0;
  while (::sigwait(&ending, &number) != 0) {
  }
  (*pair)->close();
  (*context)->plugins->end_plugin_events(events);
  return 0;
}

}  // namespace ccbox
