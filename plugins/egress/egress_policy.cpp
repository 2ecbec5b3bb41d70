#include "egress_policy.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "pattern_index.hpp"
#include "this_host.hpp"

namespace ccbox::egress {

namespace {

constexpr std::size_t max_name_bytes = 253;

// The names under which clouds serve credentials. An upstream proxy resolves names out of our sight, so their
// addresses being refused is not enough.
constexpr std::array metadata_names{
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.com",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.packet.net",
    "metadata.tencentyun.com",
};

// Address ranges; of overlapping ones the widest answers.
class range_table {
 public:
  void add(const address_range& range, std::uint32_t rule) {
    const bool v4 = range.first.is_v4() && range.prefix_bits >= 96;
    (v4 ? v4_ : v6_).push_back({range, rule});
  }
  void finish() {
    for (auto* items : {&v4_, &v6_}) {
      std::sort(items->begin(), items->end(), [](const item& a, const item& b) {
        if (a.range.first != b.range.first) return a.range.first < b.range.first;
        return std::pair(a.range.prefix_bits, a.rule) < std::pair(b.range.prefix_bits, b.rule);
      });
      std::vector<item> outer;
      for (const auto& one : *items)
        if (outer.empty() || !outer.back().range.contains(one.range.first)) outer.push_back(one);
      *items = std::move(outer);
    }
  }
  std::optional<std::uint32_t> find(const ip_address& address) const {
    const auto& items = address.is_v4() ? v4_ : v6_;
    auto after = std::upper_bound(items.begin(), items.end(), address,
                                  [](const ip_address& a, const item& b) { return a < b.range.first; });
    if (after == items.begin() || !(--after)->range.contains(address)) return {};
    return after->rule;
  }

 private:
  struct item {
    address_range range;
    std::uint32_t rule;
  };
  std::vector<item> v4_, v6_;  // none within another
};

const rule& floor_rule() {
  static const rule floor{rule_action::floor, "cloud metadata addresses", std::string(built_in_origin),
                          "they serve credentials"};
  return floor;
}

rule metadata_rule(const char* name) {
  return {rule_action::deny, name, std::string(built_in_origin),
          "a cloud metadata service, which serves credentials"};
}

std::size_t hash_of(const std::vector<rule>& rules) {
  std::size_t out = rules.size();
  for (const auto& one : rules)
    out = out * 31 + std::hash<std::string>()(one.pattern) + static_cast<std::size_t>(one.action);
  return out;
}

}  // namespace

struct egress_policy::impl {
  std::vector<rule> given, built_in;  // built_in[0] is the floor
  bool allows_something = false;
  pattern_index patterns;
  range_table floor, resolved;

  const rule& at(std::uint32_t index) const {
    return index < given.size() ? given[index] : built_in[index - given.size()];
  }
  std::string add(std::uint32_t index);
  const rule* floor_of(const ip_address& address) const;
  const rule* denied_by(const ip_address& address, std::uint16_t port) const;
  const rule* lifted_by(const ip_address& address) const;
};

constexpr std::string_view no_range =
    "it is no address range; write ADDRESS/BITS with nothing behind the prefix, as in 198.18.0.0/15";

std::string egress_policy::check(const rule& one) {
  if (one.action == rule_action::floor || one.action == rule_action::resolved)
    return parse_address_range(one.pattern) ? std::string() : std::string(no_range);
  auto parsed = parse_domain_pattern(one.pattern);
  if (auto* bad = std::get_if<bad_pattern>(&parsed)) return std::move(bad->why);
  if (one.action != rule_action::allow) return {};
  const auto& pattern = std::get<domain_pattern>(parsed);
  if (pattern.shape == domain_pattern::form::address && classify(pattern.address) == address_class::metadata)
    return without_effect({false, denial_reason::denied, &floor_rule()}, {});
  if (pattern.shape == domain_pattern::form::exact)
    for (const auto* name : metadata_names)
      if (pattern.name == name) {
        const auto deny = metadata_rule(name);
        return without_effect({false, denial_reason::denied, &deny}, {});
      }
  return {};
}

// Empty, or why the rule is bad.
std::string egress_policy::impl::add(std::uint32_t index) {
  const auto& one = at(index);
  if (one.action == rule_action::floor || one.action == rule_action::resolved) {
    const auto range = parse_address_range(one.pattern);
    if (!range) return std::string(no_range);
    (one.action == rule_action::floor ? floor : resolved).add(*range, index);
    return {};
  }
  auto parsed = parse_domain_pattern(one.pattern);
  if (auto* bad = std::get_if<bad_pattern>(&parsed)) return std::move(bad->why);
  const auto& pattern = std::get<domain_pattern>(parsed);
  const bool allow = one.action == rule_action::allow;
  allows_something = allows_something || allow;
  if (!allow || pattern.port != 0) {
    patterns.add(pattern, {allow, pattern.port, index});
    return {};
  }
  for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{443}})
    patterns.add(pattern, {allow, port, index});
  if (one.git_host) patterns.add(pattern, {allow, 22, index});
  return {};
}

const rule* egress_policy::impl::floor_of(const ip_address& address) const {
  if (classify(address) == address_class::metadata) return &built_in[0];
  if (const auto index = floor.find(address)) return &at(*index);
  for (const auto& inner : embedded_in(address))
    if (const auto index = floor.find(inner)) return &at(*index);
  return nullptr;
}

const rule* egress_policy::impl::denied_by(const ip_address& address, std::uint16_t port) const {
  if (const auto* deny = patterns.of_address(address, port).deny) return &at(deny->rule);
  for (const auto& inner : embedded_in(address))
    if (const auto* deny = patterns.of_address(inner, port).deny) return &at(deny->rule);
  return nullptr;
}

// A range that the operator lets names resolve into. It speaks for the address as written; whoever else it
// leads to must be public or in such a range too.
const rule* egress_policy::impl::lifted_by(const ip_address& address) const {
  const auto index = resolved.find(address);
  if (!index) return nullptr;
  for (const auto& inner : embedded_in(address))
    if (classify(inner) != address_class::global && !resolved.find(inner)) return nullptr;
  return &at(*index);
}

std::string_view to_string(denial_reason reason) {
  switch (reason) {
    case denial_reason::not_allowed:
      return "blocked-by-allowlist";
    case denial_reason::denied:
      return "blocked-by-denylist";
    case denial_reason::ip_literal:
      return "ip-literal";
    case denial_reason::port:
      return "port";
    case denial_reason::resolved_address:
      return "resolved-address";
    case denial_reason::malformed:
      return "malformed";
    case denial_reason::sni_mismatch:
      return "sni-mismatch";
    case denial_reason::limit:
      return "limit";
    case denial_reason::self:
      return "self";
  }
  return "unknown";
}

egress_policy::egress_policy() : impl_(std::make_unique<impl>()) {}
egress_policy::~egress_policy() = default;

std::variant<std::shared_ptr<const egress_policy>, bad_rule> egress_policy::build(std::vector<rule> rules) {
  static std::mutex mutex;
  static std::unordered_map<std::size_t, std::weak_ptr<const egress_policy>> alive;
  const auto hash = hash_of(rules);
  {
    const std::lock_guard lock(mutex);
    const auto at = alive.find(hash);
    if (const auto same = at != alive.end() ? at->second.lock() : nullptr)
      if (same->impl_->given == rules) return same;
  }

  const std::shared_ptr<egress_policy> policy(new egress_policy);
  auto& self = *policy->impl_;
  self.given = std::move(rules);
  self.built_in.push_back(floor_rule());
  for (const auto* name : metadata_names)
    self.built_in.push_back(metadata_rule(name));
  const auto given = static_cast<std::uint32_t>(self.given.size());
  for (std::uint32_t i = 0; i < given; ++i)
    if (auto why = self.add(i); !why.empty()) return bad_rule{i, std::move(why)};
  for (std::uint32_t i = 1; i < self.built_in.size(); ++i)
    self.add(given + i);
  self.patterns.finish();
  self.floor.finish();
  self.resolved.finish();

  const std::lock_guard lock(mutex);
  std::erase_if(alive, [](const auto& entry) { return entry.second.expired(); });
  alive[hash] = policy;
  return policy;
}

// Whether either address of this host may be dialled for it.
static decision permits_this_host(const egress_policy& policy, const destination& to) {
  const auto both = this_host_addresses();
  const auto first = policy.permits(to, both[0]);
  if (first.allowed) return first;
  const auto second = policy.permits(to, both[1]);
  return second.allowed ? second : first;
}

decision egress_policy::decide(const destination& to) const {
  const auto& self = *impl_;
  pattern_index::verdict found;
  if (to.is_address()) {
    if (const auto* floor = self.floor_of(to.address()))
      return {false, denial_reason::denied, floor, classify(to.address())};
    if (const auto* deny = self.denied_by(to.address(), to.port)) return {false, denial_reason::denied, deny};
    found = self.patterns.of_address(to.address(), to.port);
  } else {
    if (to.name().empty() || to.name().size() > max_name_bytes || to.port == 0)
      return {false, denial_reason::malformed};
    found = self.patterns.of_name(to.name(), to.port);
  }
  if (found.deny != nullptr) return {false, denial_reason::denied, &self.at(found.deny->rule)};
  if (!to.is_address() && is_this_host(to.name()))
    if (const auto where = permits_this_host(*this, to); !where.allowed) return where;
  if (found.allow != nullptr) return {true, {}, &self.at(found.allow->rule)};
  if (found.other_port != nullptr) return {false, denial_reason::port, &self.at(found.other_port->rule)};
  return {false, to.is_address() ? denial_reason::ip_literal : denial_reason::not_allowed};
}

decision egress_policy::permits(const destination& to, const ip_address& address) const {
  const auto& self = *impl_;
  const auto kind = classify(address);
  const auto refused = [&](const rule* by) {
    return decision{false, denial_reason::resolved_address, by, kind};
  };
  if (const auto* floor = self.floor_of(address)) return refused(floor);
  if (const auto* deny = self.denied_by(address, to.port)) return refused(deny);
  if (kind == address_class::global) return {true, {}, nullptr, kind};
  if (const auto* allow = self.patterns.of_address(address, to.port).allow)
    return {true, {}, &self.at(allow->rule), kind};
  if (const auto* lifted = self.lifted_by(address)) return {true, {}, lifted, kind};
  return refused(nullptr);
}

std::optional<bad_rule> egress_policy::dead_entry() const {
  // No pattern has it, so that a wildcard's name with it is met by those rules alone that meet all its names.
  constexpr std::string_view any_label = "!";
  for (std::size_t i = 0; i < impl_->given.size(); ++i) {
    const auto& one = impl_->given[i];
    if (one.action != rule_action::allow) continue;
    const auto parsed = parse_domain_pattern(one.pattern);
    const auto& pattern = std::get<domain_pattern>(parsed);
    destination to{pattern.name, pattern.port};
    if (pattern.shape == domain_pattern::form::address) to.host = pattern.address;
    if (pattern.shape == domain_pattern::form::subdomains)
      to.host = std::string(any_label) + "." + pattern.name;
    if (pattern.shape == domain_pattern::form::one_label)
      to.host = pattern.name + "." + std::string(any_label) + "." + pattern.after;
    std::vector<std::uint16_t> ports{pattern.port};
    if (pattern.port == 0) ports = {443, 80};
    if (pattern.port == 0 && one.git_host) ports.push_back(22);
    decision first;
    const bool dead = std::all_of(ports.begin(), ports.end(), [&](std::uint16_t port) {
      to.port = port;
      const auto decided = decide(to);
      if (port == ports.front()) first = decided;
      return !decided.allowed &&
             (decided.reason == denial_reason::denied || decided.reason == denial_reason::resolved_address);
    });
    to.port = ports.front();
    if (dead) return bad_rule{i, without_effect(first, to)};
  }
  return std::nullopt;
}

std::size_t egress_policy::rule_count() const {
  return impl_->given.size();
}

bool egress_policy::empty() const {
  return !impl_->allows_something;
}

}  // namespace ccbox::egress
