#include "refusals.hpp"

#include <algorithm>

#include "denial.hpp"
#include "json_reader.hpp"
#include "result.hpp"

namespace ccbox {

namespace {

constexpr std::size_t most_kept = 1000;
constexpr std::size_t most_lines = 20;

struct details {
  std::string reason, rule, origin, operation;
};

// What the plugin said beside host and port; whatever is missing or malformed stays as it is.
details read_details(const sandbox_violation& violation) {
  details out;
  const auto value = parse_json(violation.raw.value_or("{}"));
  if (!value || !value->is_object()) return out;
  std::optional<error> ignored;
  json_object_reader reader(*value, "", ignored);
  reader.optional("reason", out.reason);
  reader.optional("rule", out.rule);
  reader.optional("origin", out.origin);
  reader.optional("operation", out.operation);
  if (!out.rule.empty() && !out.origin.empty()) out.rule += " (" + out.origin + ")";
  return out;
}

std::string without_default_port(const std::string& target) {
  for (const std::string_view port : {":443", ":80"})
    if (target.ends_with(port)) return target.substr(0, target.size() - port.size());
  return target;
}

std::string connections(std::uint64_t count) {
  return count == 1 ? "a connection" : std::to_string(count) + " connections";
}

// `localhost` and what is below it, with a port.
bool is_this_host(const std::string& target) {
  const auto colon = target.rfind(':');
  if (colon == target.npos) return false;
  std::string host = "." + target.substr(0, colon);
  if (host.ends_with('.')) host.pop_back();
  std::transform(host.begin(), host.end(), host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return host.ends_with(".localhost");
}

// Of a file; empty: of none. Programs put a new version of a file into its place by a rename.
std::string_view verb_of(std::string_view action, std::string_view operation) {
  if (operation == "rename" && action == "file-write-create") return "move something to";
  if (action == "file-write-create") return "make";
  if (action == "file-write-data") return "write";
  if (action == "file-write-unlink") return "remove";
  if (action == "file-link") return "link";
  if (action.starts_with("file-read")) return "read";
  if (action == "file-write-mode" || action == "file-write-owner") return "change the mode or owner of";
  if (action.starts_with("file-write")) return "change";
  if (action == "process-exec") return "execute";
  if (action == "file*") return "use";
  return {};
}

// git says no more than that it could not write it.
bool is_git_config(std::string_view rule) {
  return rule.find(".git/") != rule.npos && rule.find("/config") != rule.npos;
}

// Whatever of rule and reason there is.
std::string because(const std::string& rule, const std::string& reason) {
  std::string text = printable(rule);
  if (!rule.empty() && !reason.empty()) text += "; ";
  text += printable(reason);
  return text.empty() ? text : ": " + text;
}

}  // namespace

bool is_by_list(std::string_view reason) {
  return reason == "blocked-by-allowlist" || reason == "port" || reason == "ip-literal";
}

std::string remedy_of(const std::string& reason, const std::string& target, bool network_allowed,
                      const std::string& rule, const std::vector<egress_rule>& rules) {
  if (is_by_list(reason) && !network_allowed) return "the session's network is off";
  if (reason == "blocked-by-allowlist")
    return "allow it with --allow-domain " + quoted(without_default_port(target));
  if (reason == "port") return "allow the port with --allow-domain " + quoted(target);
  if (reason == "ip-literal" && (target.starts_with("127.") || target.starts_with("[::1]")))
    return "allow it with --allow-domain " + quoted(target) + ", and set NO_PROXY= for the command";
  if (reason == "ip-literal") return "use the host's name, or --allow-domain " + quoted(target);
  if (reason == "blocked-by-denylist") {
    if (rule.ends_with("(built in)")) return "nothing opens it";
    for (const auto& each : rules)
      if (!each.where.empty() && rule == each.pattern + " (" + each.origin + ")")
        return "denied for everybody at " + each.where;
    return "the egress file denies it for everybody";
  }
  if (reason == "resolved-address" && is_this_host(target)) {
    const auto address = quoted("127.0.0.1" + target.substr(target.rfind(':')));
    return "ask for " + address + ", allow it with --allow-domain " + address +
           ", and set NO_PROXY= for the command";
  }
  if (reason == "resolved-address") return "its name leads to an address that is not on the Internet";
  if (reason == "limit") return "the limits are in the egress file";
  return {};
}

void refusals::table::add(key what, std::uint64_t count, std::string rule, std::string capability) {
  if (seen_.size() >= most_kept && !seen_.contains(what)) {
    others_ += count;
    return;
  }
  auto& known = seen_[std::move(what)];
  known.count += count;
  known.rule = std::move(rule);
  known.capability = std::move(capability);
}

std::vector<const std::pair<const refusals::table::key, refusals::tally>*> refusals::table::most_frequent()
    const {
  std::vector<const std::pair<const key, tally>*> order;
  for (const auto& each : seen_)
    order.push_back(&each);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.count > b->second.count; });
  order.resize(std::min(order.size(), most_lines));
  return order;
}

std::uint64_t refusals::table::others() const {
  auto left = others_;
  for (const auto& [what, seen] : seen_)
    left += seen.count;
  for (const auto* named : most_frequent())
    left -= named->second.count;
  return left;
}

void refusals::add(const sandbox_violation& violation) {
  const auto found = read_details(violation);
  if (const auto verb = verb_of(violation.action, found.operation); !verb.empty()) {
    names_.add({"to " + std::string(verb) + " " + quoted(violation.target), found.reason}, violation.count,
               found.rule);
    return;
  }
  if (violation.action == "*") return names_.add_others(violation.count);
  if (violation.action != network_action)
    return names_.add({violation.action + " of " + quoted(violation.target), found.reason}, violation.count,
                      found.rule);
  refused_.add({violation.target, found.reason}, violation.count, found.rule,
               violation.suggested_capability.value_or(""));
}

void refusals::add(const sandbox_unreachable& destination) {
  unreached_.add({destination.target, destination.reason}, destination.count, {});
}

std::string refusals::text(const std::vector<egress_rule>& rules) const {
  std::string text;
  for (const auto* each : names_.most_frequent()) {
    const auto& seen = each->second;
    text += "ccbox: refused " + (seen.count == 1 ? "" : std::to_string(seen.count) + " times ") +
            printable(each->first.first) + because(seen.rule, each->first.second) +
            (is_git_config(seen.rule) ? "; set it outside of the enclosure" : "") + "\n";
  }
  if (const auto others = names_.others(); others > 0)
    text += "ccbox: refused " + std::to_string(others) + " further actions\n";
  for (const auto* each : refused_.most_frequent()) {
    const auto& [target, reason] = each->first;
    const auto& seen = each->second;
    text += "ccbox: refused " + connections(seen.count) + " to " + printable(target);
    if (!reason.empty()) text += ": " + printable(reason);
    if (!seen.rule.empty()) text += " by " + printable(seen.rule);
    const auto remedy = remedy_of(reason, target, network_allowed_, seen.rule, rules);
    text += remedy.empty() ? "" : "; " + printable(remedy);
    if (!seen.capability.empty() && network_allowed_)
      text += ", or with the capability " + printable(seen.capability);
    text += "\n";
  }
  if (const auto others = refused_.others(); others > 0)
    text += "ccbox: refused " + connections(others) + " to further destinations\n";
  for (const auto* each : unreached_.most_frequent())
    text += "ccbox: " + connections(each->second.count) + " to " + printable(each->first.first) +
            " failed: " + printable(each->first.second) + "; it is allowed\n";
  if (const auto others = unreached_.others(); others > 0)
    text += "ccbox: " + connections(others) + " to further destinations failed; they are allowed\n";
  return text;
}

}  // namespace ccbox
