#include <boost/json.hpp>
#include <charconv>

#include "check.hpp"
#include "context.hpp"
#include "output.hpp"
#include "policy.hpp"
#include "refusals.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

constexpr std::uint16_t default_port = 443;

struct asked_domain {
  std::string host;
  std::uint16_t port = default_port;
};

// HOST, HOST:PORT, [IPV6]:PORT or an IPv6 address alone. The host itself is the plugin's to judge.
result<asked_domain> parse_domain(const std::string& word) {
  asked_domain out{word, default_port};
  const auto colon = word.rfind(':');
  const bool is_bare_v6 = colon != word.npos && word.find(':') != colon && !word.starts_with('[');
  if (is_bare_v6) {
    out.host = "[" + word + "]";
    return out;
  }
  if (colon == word.npos || (word.starts_with('[') && word.ends_with(']'))) return out;
  const char* const end = word.data() + word.size();
  unsigned port = 0;
  const auto [stopped, bad] = std::from_chars(word.data() + colon + 1, end, port);
  if (bad != std::errc() || stopped != end || port == 0 || port > 0xffff) {
    return error{error_code::invalid_argument, "domain " + quoted(word) + " has no port behind its colon",
                 "HOST or HOST:PORT, with a port between 1 and 65535"};
  }
  out.host = word.substr(0, colon);
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

// Where no pair decides.
egress_decision verdict(bool allowed, std::string reason, std::string text) {
  return {allowed, std::move(reason), {}, std::move(text)};
}

result<egress_decision> decide(const cli_context& context, const policy& rules, const asked_domain& asked) {
  if (!rules.egress.proxied) return verdict(true, "", "nothing is refused: the network is the host's");
  const egress_plugin* plugin = context.plugins->find_egress();
  if (!plugin)
    return verdict(false, "no-egress-plugin",
                   "nothing is reachable: no egress plugin is loaded, see `ccbox plugins`");
  if (auto fine = check_allowlist(rules.egress, *plugin); !fine) return fine.error();
  egress_request request;
  request.session_id = rules.spec.session_id;
  request.rules = rules.egress.rules;
  request.options = rules.egress.options;
  auto pair = plugin->open(request);
  if (!pair) return pair.error();
  return (*pair)->decide(asked.host, asked.port);
}

}  // namespace

int check_domain(const cli_context& context, const requested_sandbox& wanted, const std::string& word,
                 bool as_json) {
  const auto asked = parse_domain(word);
  if (!asked) return report(asked.error());
  const auto rules = compile_policy(wanted.spec, context.host, context.config, context.sources());
  if (!rules) return report(wanted.origins.translated(rules.error()));
  const auto found = decide(context, *rules, *asked);
  if (!found) return report(wanted.origins.translated(found.error()));

  const std::string target = asked->host + ":" + std::to_string(asked->port);
  const std::string remedy =
      found->allowed ? "" : remedy_of(found->reason, target, rules->egress.network_allowed);
  if (as_json) {
    print_json(json::object{{"domain", asked->host},
                            {"port", asked->port},
                            {"allowed", found->allowed},
                            {"reason", found->reason},
                            {"rule", found->rule},
                            {"explanation", found->text},
                            {"remedy", remedy}});
  } else {
    std::vector<std::vector<std::string>> rows{{"allowed", found->allowed ? "yes" : "no"}};
    if (!found->reason.empty()) rows.push_back({"reason", printable(found->reason)});
    if (!found->rule.empty()) rows.push_back({"rule", printable(found->rule)});
    if (!found->text.empty()) rows.push_back({"because", printable(found->text)});
    if (!remedy.empty()) rows.push_back({"remedy", printable(remedy)});
    print(quoted(target) + "\n" + aligned(rows, "  "));
  }
  return found->allowed ? 0 : 1;
}

}  // namespace ccbox
