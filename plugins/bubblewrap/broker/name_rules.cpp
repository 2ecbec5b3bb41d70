#include "broker/name_rules.hpp"

#include <algorithm>
#include <utility>

namespace ccbox::bubblewrap {

namespace {

// The rest of `path` below `directory`, or nothing if it does not lie there.
std::optional<std::string_view> below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.substr(1);
  if (!path.starts_with(directory)) return std::nullopt;
  path.remove_prefix(directory.size());
  if (path.empty()) return path;
  if (path.front() != '/') return std::nullopt;
  return path.substr(1);
}

}  // namespace

std::optional<name_rules> name_rules::make(const broker_orders& orders, std::string& problem) {
  name_rules made;
  const auto add = [&](glob_set& to, const std::string& pattern) {
    std::string_view cause;
    auto compiled = glob::compile(pattern, cause);
    if (!compiled) {
      problem = "the glob '" + pattern + "' " + std::string(cause);
      return false;
    }
    to.add(*std::move(compiled));
    return true;
  };
  for (const auto& given : orders.anchors) {
    auto into = std::make_unique<anchor>();
    into->guest = given.guest;
    into->rules = given.deny;
    for (const auto& rule : given.deny) {
      if (!add(into->deny, rule.glob)) return std::nullopt;
      into->guards_git = into->guards_git || rule.when == name_rule::condition::git_config;
    }
    for (const auto& pattern : given.exempt)
      if (!add(into->exempt, pattern)) return std::nullopt;
    made.anchors_.push_back(std::move(into));
  }
  return made;
}

const name_rules::state& name_rules::at(const std::string& directory) const {
  if (const auto found = remembered_.find(directory); found != remembered_.end()) return found->second;
  if (remembered_.size() >= most_remembered) remembered_.clear();
  return remembered_.emplace(directory, walk(directory)).first->second;
}

name_rules::state name_rules::walk(std::string_view directory) const {
  state found;
  for (const auto& each : anchors_) {
    auto rest = below(directory, each->guest);
    if (!rest) continue;
    position here{each.get(), each->deny.start(), each->exempt.start()};
    while (!rest->empty()) {
      const auto name = rest->substr(0, rest->find('/'));
      here.deny = each->deny.step(here.deny, name);
      here.exempt = each->exempt.step(here.exempt, name);
      rest->remove_prefix(name.size() < rest->size() ? name.size() + 1 : name.size());
    }
    found.push_back(std::move(here));
  }
  return found;
}

name_rules::state name_rules::into(const state& from, std::string_view name) const {
  state next;
  next.reserve(from.size());
  for (const auto& here : from) {
    const auto& owner = *static_cast<const anchor*>(here.anchor);
    next.push_back({here.anchor, owner.deny.step(here.deny, name), owner.exempt.step(here.exempt, name)});
  }
  return next;
}

bool name_rules::guards_git(const state& in) const {
  return std::any_of(in.begin(), in.end(), [](const position& here) {
    return static_cast<const anchor*>(here.anchor)->guards_git;
  });
}

const name_rule* name_rules::forbids(const state& in, std::string_view name) const {
  std::vector<std::uint32_t> accepted, exempt;
  const name_rule* conditional = nullptr;
  for (const auto& here : in) {
    const auto& owner = *static_cast<const anchor*>(here.anchor);
    accepted.clear();
    owner.deny.step(here.deny, name, &accepted);
    if (accepted.empty()) continue;
    exempt.clear();
    owner.exempt.step(here.exempt, name, &exempt);
    if (!exempt.empty()) continue;
    for (const auto index : accepted) {
      if (owner.rules[index].when == name_rule::condition::none) return &owner.rules[index];
      conditional = &owner.rules[index];
    }
  }
  return conditional;
}

const name_rule* name_rules::leads_to(const state& in, std::string_view name) const {
  for (const auto& here : in) {
    const auto& owner = *static_cast<const anchor*>(here.anchor);
    const auto next = owner.deny.step(here.deny, name);
    if (!next.empty()) return &owner.rules[next.front().first];
  }
  return nullptr;
}

}  // namespace ccbox::bubblewrap
