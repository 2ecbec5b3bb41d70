#include <arpa/inet.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <optional>

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

error no_domain(const std::string& word, const std::string& why, const std::string& hint) {
  return {error_code::invalid_argument, (word.empty() ? "the domain" : "domain " + quoted(word)) + " " + why,
          hint};
}

// What is no host with a port in an obvious way. The rest is the plugin's to judge.
std::optional<error> obvious_mistake(const std::string& word) {
  const std::string form = "write HOST or HOST:PORT, such as example.com:443";
  if (word.empty()) return no_domain(word, "is empty", form);
  if (const auto scheme = word.find("://"); scheme != word.npos) {
    const auto rest = word.substr(scheme + 3);
    const auto host = rest.substr(0, rest.find_first_of("/?#"));
    return no_domain(word, "is a URL",
                     "write the host name alone: " + quoted(host.substr(host.find('@') + 1)));
  }
  if (word.find('/') != word.npos)
    return no_domain(word, "has a path",
                     "write the host name alone: " + quoted(word.substr(0, word.find('/'))));
  if (word.find('@') != word.npos)
    return no_domain(word, "has a user name",
                     "write what follows the @: " + quoted(word.substr(word.rfind('@') + 1)));
  if (std::any_of(word.begin(), word.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
    return no_domain(word, "has a space or a control character in it", form);
  if (word.find('*') != word.npos)
    return no_domain(word, "has a * in it", "ask for one name; only the entries of a list have wildcards");
  return std::nullopt;
}

// HOST, HOST:PORT, [IPV6]:PORT or an IPv6 address alone.
result<asked_domain> parse_domain(const std::string& word) {
  if (const auto mistake = obvious_mistake(word)) return *mistake;
  asked_domain out{word, default_port};
  const auto colon = word.rfind(':');
  if (colon == word.npos || (word.starts_with('[') && word.ends_with(']'))) return out;
  if (word.find(':') != colon && !word.starts_with('[')) {
    in6_addr address;
    if (::inet_pton(AF_INET6, word.c_str(), &address) != 1)
      return no_domain(word, "has more than one colon",
                       "write HOST:PORT; an IPv6 address with a port is written [ADDRESS]:PORT");
    out.host = "[" + word + "]";
    return out;
  }
  const auto digits = word.substr(colon + 1);
  const char* const end = digits.data() + digits.size();
  unsigned port = 0;
  const auto [stopped, bad] = std::from_chars(digits.data(), end, port);
  if (bad != std::errc() || stopped != end || port == 0 || port > 0xffff) {
    return no_domain(
        word, digits.empty() ? "has no port behind its colon" : "has no port: " + quoted(digits) + " is none",
        "a port is a number from 1 to 65535");
  }
  out.host = word.substr(0, colon);
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

// Where no pair decides.
egress_decision verdict(bool allowed, std::string reason, std::string text) {
  return {allowed, std::move(reason), {}, std::move(text)};
}

result<egress_decision> decide(const sandbox_setup& context, const policy& rules, const asked_domain& asked) {
  if (!rules.egress.proxied) return verdict(true, "", "nothing is refused: the network is the host's");
  const egress_plugin* plugin = context.plugins->find_egress();
  if (!plugin)
    return verdict(false, "no-egress-plugin",
                   "nothing is reachable: no egress plugin is loaded, see `ccbox plugins`");
  auto pair = open_trial_pair(*plugin, rules);
  if (!pair) return pair.error();
  return (*pair)->decide(asked.host, asked.port);
}

}  // namespace

int check_domain(const sandbox_setup& context, const requested_sandbox& wanted, const std::string& word,
                 bool as_json) {
  const auto asked = parse_domain(word);
  if (!asked) return report(asked.error());
  const auto rules = compile_policy(wanted.spec, context.host, context.config, context.sources());
  if (!rules) return report(wanted.origins.translated(rules.error()));
  auto found = decide(context, *rules, *asked);
  if (!found) return report(wanted.origins.translated(found.error()));

  const std::string target = asked->host + ":" + std::to_string(asked->port);
  const bool by_list = is_by_list(found->reason) || found->reason == "resolved-address";
  if (!found->allowed && by_list && !rules->egress.network_allowed)
    found->text = target + " is refused: the network is off, by --no-network or the spec";
  const std::string remedy = found->allowed ? ""
                                            : remedy_of(found->reason, target, rules->egress.network_allowed,
                                                        found->rule, rules->egress.rules);
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
