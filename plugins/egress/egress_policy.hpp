// The rules of one session, immutable once built: deny first, then allow, else denied. Says nothing about
// addresses that names resolve to before they are known: permits() does, after the resolver.
//
// A deny entry without a port denies every port. The cloud metadata services are built in, their addresses as
// the floor (address_class::metadata) and their names as deny rules: rules add to them, none takes from them.
//
// Threads: const after construction, any thread. Sessions with equal rules share one object. A decision takes
// no lock and allocates nothing when it allows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "address.hpp"
#include "destination.hpp"
#include "domain_pattern.hpp"

namespace ccbox::egress {

enum class rule_action { allow, deny, floor, resolved };

struct rule {
  rule_action action = rule_action::allow;
  std::string pattern;  // allow, deny: a domain pattern; floor, resolved: an address range
  std::string origin;   // where it comes from: "baseline.llm", "--allow-domain"
  std::string reason;
  bool git_host = false;  // its default ports are 22, 80 and 443
  bool operator==(const rule&) const = default;
};

constexpr std::string_view built_in_origin = "built in";

enum class denial_reason {
  not_allowed,       // "blocked-by-allowlist"
  denied,            // "blocked-by-denylist"
  ip_literal,        // "ip-literal": an address that no entry names
  port,              // "port": the name is allowed, on other ports
  resolved_address,  // "resolved-address"
  malformed,         // "malformed"
  sni_mismatch,      // "sni-mismatch"
  limit,             // "limit"
  self,              // "self": one of our own listeners
};
std::string_view to_string(denial_reason reason);

struct decision {
  bool allowed = false;
  denial_reason reason = denial_reason::not_allowed;
  const rule* by = nullptr;  // the rule that decided; null: none matched. Lives as long as the policy
  // resolved_address: what kind the address is. Clients are told this, never the address.
  address_class found = address_class::global;
};

struct bad_rule {
  std::size_t index;
  std::string why;
};

class egress_policy {
 public:
  static std::variant<std::shared_ptr<const egress_policy>, bad_rule> build(std::vector<rule> rules);
  // Empty: build() would take it, and what is built in does not refuse all that it allows. Else why not.
  // Hundreds are asked for at each start of ccbox.
  static std::string check(const rule& one);
  // An allow entry without effect: whatever it allows, the other rules or what is built in refuse. The first
  // of them, with the rule and the remedy.
  std::optional<bad_rule> dead_entry() const;
  ~egress_policy();

  decision decide(const destination& to) const;
  // After decide() allowed `to`: may `address`, which it resolved to (or is), be dialled? Never in the floor,
  // not for a non-global class unless a `resolved` range or an allow entry for exactly this address and port
  // lifts that. An address that embeds others needs ranges for all of them that are not global.
  decision permits(const destination& to, const ip_address& address) const;
  // One line for the client and the log: what was refused, by which rule, and what the user can do.
  std::string explain(const destination& to, const decision& d) const;

  std::size_t rule_count() const;  // as given to build()
  bool empty() const;              // no allow entry: everything is refused

 private:
  egress_policy();
  // Why an allow entry is dead, and the remedy; `to` is a destination of it.
  static std::string without_effect(const decision& d, const destination& to);
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ccbox::egress
