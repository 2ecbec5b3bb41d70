// egress_policy::explain(): the words for people.
#include <string>

#include "egress_policy.hpp"

namespace ccbox::egress {

namespace {

// Credentials are what metadata services are asked for.
constexpr std::string_view instead = "; hand the command what it needs in its environment or in a file";

std::string origin_of(const rule& by) {
  return by.origin.empty() ? std::string() : " (" + by.origin + ")";
}

// What to write to allow it: the port only where the entry would not mean it anyway.
std::string entry_for(const destination& to) {
  return to.port == 80 || to.port == 443 ? host_text(to) : authority_text(to);
}

std::string allow_with(const std::string& entry) {
  return "allow it with --allow-domain " + entry + " or egressAllowlist";
}

// The environment keeps clients from asking the proxies for loopback: test suites have servers of their own.
constexpr std::string_view through_the_proxy =
    ", by a command that asks the proxy for it: set NO_PROXY= and no_proxy= for that command, or use curl "
    "--noproxy ''";

std::string ports_of(const rule& by) {
  const auto parsed = parse_domain_pattern(by.pattern);
  const auto* pattern = std::get_if<domain_pattern>(&parsed);
  if (pattern != nullptr && pattern->port != 0) return "port " + std::to_string(pattern->port);
  return by.git_host ? "ports 22, 80 and 443" : "ports 80 and 443";
}

std::string denied(const rule* by) {
  if (by == nullptr) return "a deny rule names it; that wins over every allow rule";
  if (by->action == rule_action::floor)
    return "it is among " + by->pattern + origin_of(*by) + ", which nothing opens" +
           (by->origin == built_in_origin ? std::string(instead) : "; use another host");
  std::string out = "the rule " + by->pattern + origin_of(*by) + " denies it";
  if (!by->reason.empty()) out += ": " + by->reason;
  if (by->origin == built_in_origin) return out + "; nothing opens it" + std::string(instead);
  return out + "; a deny rule wins over every allow rule, and whoever keeps that list can take it out";
}

// Never the address, nor a rule that gives it away.
std::string resolved(const destination& to, const decision& d) {
  const std::string what = to.is_address() ? "it is " : "it resolves to ";
  const auto port = ":" + std::to_string(to.port);
  if (d.found == address_class::metadata)
    return what + std::string(to_string(d.found)) + ", which nothing opens" + std::string(instead);
  if (d.by != nullptr && d.by->action == rule_action::floor)
    return what + "an address in a range that nothing opens" + origin_of(*d.by) + "; use another host";
  if (d.by != nullptr)
    return what + "an address that a rule denies" + origin_of(*d.by) + "; use another host";
  const auto kind = what + std::string(to_string(d.found));
  switch (d.found) {
    case address_class::loopback:
    case address_class::unspecified:
      return kind + "; a service of this host is reached as 127.0.0.1" + port +
             " once --allow-domain 127.0.0.1" + port + " or egressAllowlist names it" +
             std::string(through_the_proxy);
    case address_class::benchmark:
      return kind +
             ", as fake-IP resolvers answer; if yours is one, let names resolve into 198.18.0.0/15 in the "
             "egress configuration";
    case address_class::multicast:
    case address_class::link_local:
    case address_class::reserved:
      return kind + "; look at what the name resolves to, for no public service is there";
    default:
      return kind + "; allow that address itself with --allow-domain ADDRESS" + port +
             " or egressAllowlist, or let names resolve into its range in the egress configuration";
  }
}

}  // namespace

std::string egress_policy::without_effect(const decision& d, const destination& to) {
  const std::string out = "allows nothing: ";
  if (d.by == nullptr) {
    const auto port = ":" + std::to_string(to.port);
    return out + "it is this host, which is opened by its address; write 127.0.0.1" + port +
           " instead, or beside it";
  }
  if (d.by->action == rule_action::floor)
    return out + "it is among " + d.by->pattern + origin_of(*d.by) + ", which nothing opens; leave it out" +
           (d.by->origin == built_in_origin ? std::string(instead) : "");
  const auto rule = out + "the rule " + d.by->pattern + origin_of(*d.by) + " denies it";
  const auto reason = d.by->reason.empty() ? "" : ": " + d.by->reason;
  if (d.by->origin == built_in_origin)
    return rule + reason + ", and nothing opens it; leave it out" + std::string(instead);
  return rule + reason + "; leave it out, or take that rule out: a deny rule wins over every allow rule";
}

std::string egress_policy::explain(const destination& to, const decision& d) const {
  const bool nameless = !to.is_address() && to.name().empty();
  std::string out = (nameless ? std::string("the destination") : authority_text(to)) + " is refused: ";
  switch (d.reason) {
    case denial_reason::not_allowed:
      if (empty())
        return out +
               "this session may reach nothing; whoever starts it says what it may reach, by a spec or by "
               "ccbox's options";
      if (!to.is_address()) {
        // One label more is allowed where a rule for what is below is all that is missed.
        const auto below = decide({"x." + to.name(), to.port});
        if (below.allowed)
          return out + "the rule " + below.by->pattern + origin_of(*below.by) +
                 " allows the names below it, not itself; " + allow_with(entry_for(to));
      }
      return out + "no rule allows it; " + allow_with(entry_for(to));
    case denial_reason::denied:
      return out + denied(d.by);
    case denial_reason::ip_literal:
      out += "it is an address, and no rule names this address; ";
      if (to.is_address() && classify(to.address()) == address_class::loopback)
        return out + allow_with(authority_text(to)) + std::string(through_the_proxy);
      return out + "ask for the host by its name, or " + allow_with(authority_text(to));
    case denial_reason::port:
      if (d.by != nullptr) {
        out +=
            "the rule " + d.by->pattern + origin_of(*d.by) + " allows it on " + ports_of(*d.by) + " only; ";
      } else {
        out += "it is allowed on other ports only; ";
      }
      return out + allow_with(authority_text(to));
    case denial_reason::resolved_address:
      return out + resolved(to, d);
    case denial_reason::malformed:
      return out +
             "it is no host and port; write HOST:PORT, the host in letters, digits and hyphens or an address";
    case denial_reason::sni_mismatch:
      return out +
             "the TLS handshake in the tunnel asks for another server; open the tunnel to the server that it "
             "asks for, or set `sni: log` in the egress configuration";
    case denial_reason::limit:
      return out +
             "the session has as many connections as it may have; close some, or raise max_tunnels and "
             "max_pending in the egress configuration";
    case denial_reason::self:
      return out +
             "it is a listener of the proxies themselves, which no rule opens; ask the proxy for the host "
             "that "
             "you want to reach";
  }
  return out + "no rule allows it";
}

}  // namespace ccbox::egress
