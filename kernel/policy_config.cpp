#include "policy_config.hpp"

#include <sstream>

#include "glob.hpp"
#include "path_spelling.hpp"
#include "paths.hpp"
#include "shipped_config.hpp"
#include "yaml_document.hpp"

namespace ccbox {

namespace {

enum class pattern_kind { path, fixed_path, name };

bool is_one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\0\n\r", 3)) == std::string_view::npos;
}

// Empty: fine. Else why not.
std::string refuse_pattern(const std::string& pattern, pattern_kind kind) {
  if (kind == pattern_kind::name) {
    if (pattern.starts_with('~')) return "is a path; a name rule is a name or begins with `**/`";
    const auto compiled = compile_glob(pattern);
    return compiled ? "" : compiled.error().what;
  }
  if (pattern.find('\0') != std::string::npos) return "contains a NUL byte";
  if (!pattern.starts_with('/') && !pattern.starts_with("~/")) return "is neither absolute nor below `~/`";
  if (("/" + pattern + "/").find("/../") != std::string::npos) return "has `..` as a component";
  if (normalise_path(pattern) == "/" || normalise_path(pattern) == "~") return "names everything";
  if (!has_wildcard(pattern)) return "";
  if (kind == pattern_kind::fixed_path) return "has a wildcard; only a fixed path can be bound";
  const auto compiled = compile_glob(pattern.substr(pattern.find('/') + 1));
  return compiled ? "" : compiled.error().what;
}

result<std::string> parse_reason(const yaml_value& group) {
  auto why = group["why"].as_string();
  if (!why) return why.error();
  if (why->empty() || !is_one_line(*why)) return group["why"].error_here("`why` must be one line of text");
  return why;
}

result<name_condition> parse_condition(const yaml_value& group) {
  if (!group.has("vetted")) return name_condition::none;
  auto name = group["vetted"].as_string();
  if (!name) return name.error();
  if (*name == "git-config") return name_condition::git_config;
  if (*name == "new") return name_condition::is_new;
  return group["vetted"].error_here("unknown condition " + quoted(*name), "`vetted` is git-config or new");
}

result<std::vector<config_entry>> parse_entries(const yaml_value& section, pattern_kind kind) {
  std::vector<config_entry> out;
  auto groups = section.items();
  if (!groups) return groups.error();
  for (const auto& group : *groups) {
    auto known = kind == pattern_kind::name ? group.require_keys({"why", "paths", "vetted"})
                                            : group.require_keys({"why", "paths"});
    if (!known) return known.error();
    auto why = parse_reason(group);
    if (!why) return why.error();
    const auto condition = parse_condition(group);
    if (!condition) return condition.error();
    auto paths = group["paths"].items();
    if (!paths) return paths.error();
    if (paths->empty()) return group.error_here("`paths` is empty", "remove the entry, or list paths");
    for (const auto& item : *paths) {
      auto pattern = item.as_string();
      if (!pattern) return pattern.error();
      if (const auto reason = refuse_pattern(*pattern, kind); !reason.empty())
        return item.error_here(quoted(*pattern) + ": " + reason);
      if (kind != pattern_kind::name) *pattern = normalise_path(*pattern);
      out.push_back({std::move(*pattern), *why, item.where(), *condition});
    }
  }
  return out;
}

result<rule_bits> parse_bits(const yaml_value& list) {
  rule_bits bits = 0;
  auto names = list.items();
  if (!names) return names.error();
  for (const auto& item : *names) {
    auto name = item.as_string();
    if (!name) return name.error();
    const auto bit = rule_bit_from_name(*name);
    if (!bit)
      return item.error_here("unknown rule " + quoted(*name),
                             "the rules are: " + join_rule_bits(known_rule_bits()));
    bits |= *bit;
  }
  return bits;
}

result<void> parse_required(const yaml_value& section, policy_config& out) {
  if (auto known = section.require_keys({"linux", "macos"}); !known) return known.error();
  for (const auto key : {"linux", "macos"})
    if (!section.has(key)) return section.error_here("missing key '" + std::string(key) + "'");
  auto bits = parse_bits(section["linux"]);
  if (!bits) return bits.error();
  out.required_linux = *bits;
  // A launch may never go without these; a policy file may not say otherwise.
  for (const auto& rule : all_rule_bits())
    if (!rule.waivable && !(out.required_linux & rule.bit))
      return section["linux"].error_here(quoted(rule.name) + " is missing; no launch goes without it");
  bits = parse_bits(section["macos"]);
  if (!bits) return bits.error();
  out.required_macos = *bits;
  return {};
}

result<std::vector<std::string>> parse_patterns(const yaml_value& list, bool may_be_all) {
  std::vector<std::string> out;
  auto items = list.items();
  if (!items) return items.error();
  for (const auto& item : *items) {
    auto text = item.as_string();
    if (!text) return text.error();
    if (text->empty() || !is_one_line(*text)) return item.error_here("must be one line of text");
    if (!may_be_all && text->find_first_not_of("*?") == std::string::npos)
      return item.error_here(quoted(*text) + " means every variable");
    out.push_back(std::move(*text));
  }
  return out;
}

// Groups of names with a reason: one text a group, names by spaces, which no name has.
result<std::vector<std::string>> parse_denied_names(const yaml_value& section) {
  std::vector<std::string> out;
  auto groups = section.items();
  if (!groups) return groups.error();
  for (const auto& group : *groups) {
    if (auto known = group.require_keys({"why", "names"}); !known) return known.error();
    auto why = parse_reason(group);
    if (!why) return why.error();
    auto names = group["names"].as_string();
    if (!names) return names.error();
    std::istringstream words(*names);
    const auto before = out.size();
    for (std::string word; words >> word;)
      out.push_back(std::move(word));
    if (out.size() == before)
      return group["names"].error_here("`names` is empty", "remove the entry, or list names");
  }
  return out;
}

result<environment_config> parse_environment(const yaml_value& section) {
  if (auto known = section.require_keys({"allow", "deny", "secret_names", "secret_values"}); !known)
    return known.error();
  environment_config out;
  struct part {
    const char* key;
    std::vector<std::string>* list;
  };
  for (const auto& p : {part{"allow", &out.allow}, part{"deny", &out.deny},
                        part{"secret_names", &out.secret_names}, part{"secret_values", &out.secret_values}}) {
    if (!section.has(p.key)) return section.error_here("missing key '" + std::string(p.key) + "'");
    const bool is_deny = p.list == &out.deny;
    auto list =
        is_deny ? parse_denied_names(section[p.key]) : parse_patterns(section[p.key], p.list != &out.allow);
    if (!list) return list.error();
    *p.list = std::move(*list);
  }
  return out;
}

result<policy_config> parse_document(const yaml_value& root, const std::string& name) {
  policy_config out;
  out.file = name;
  struct section {
    const char* key;
    std::vector<config_entry>* entries;
    pattern_kind kind;
  };
  const section sections[] = {{"system_read", &out.system_read, pattern_kind::fixed_path},
                              {"read_deny", &out.read_deny, pattern_kind::path},
                              {"write_deny", &out.write_deny, pattern_kind::path},
                              {"name_deny", &out.name_deny, pattern_kind::name},
                              {"name_exempt", &out.name_exempt, pattern_kind::name},
                              {"exec_deny", &out.exec_deny, pattern_kind::path}};
  if (auto known = root.require_keys({"required", "system_read", "read_deny", "write_deny", "name_deny",
                                      "name_exempt", "exec_deny", "max_existing_matches", "environment"});
      !known)
    return known.error();
  // A section that is gone by accident would be a hole; one that is empty on purpose says so.
  for (const auto key : {"required", "environment", "max_existing_matches"})
    if (!root.has(key))
      return root.error_here("missing section '" + std::string(key) + "'",
                             "copy it from the policy.yaml that ccbox is installed with");
  if (auto required = parse_required(root["required"], out); !required) return required.error();
  for (const auto& s : sections) {
    if (!root.has(s.key))
      return root.error_here("missing section '" + std::string(s.key) + "'",
                             "write `" + std::string(s.key) + ": []` if nothing is meant");
    auto entries = parse_entries(root[s.key], s.kind);
    if (!entries) return entries.error();
    if (s.entries != &out.name_deny)
      for (const auto& entry : *entries)
        if (entry.condition != name_condition::none)
          return error{error_code::invalid_argument,
                       entry.where + ": `vetted` belongs to what name_deny denies", "remove it"};
    *s.entries = std::move(*entries);
  }
  const auto limit = root["max_existing_matches"].as_integer();
  if (!limit) return limit.error();
  if (*limit < 1 || *limit > 100'000)
    return root["max_existing_matches"].error_here("must be between 1 and 100000");
  out.max_existing_matches = static_cast<std::size_t>(*limit);
  auto environment = parse_environment(root["environment"]);
  if (!environment) return environment.error();
  out.environment = std::move(*environment);
  return out;
}

}  // namespace

result<policy_config> parse_policy_config(std::string_view text, const std::string& name) {
  auto root = load_yaml_text(text, name);
  if (!root) return root.error();
  return parse_document(*root, name);
}

result<policy_config> load_policy_config(const std::string& path) {
  std::string file = path;
  if (file.empty()) {
    auto found = find_installation();
    if (!found) return found.error();
    file = found->policy;
  }
  const auto text = read_yaml_file(file);
  if (!text) return text.error();
  if (auto shipped = shipped_policy(*text, file)) return std::move(*shipped);
  return parse_policy_config(*text, file);
}

}  // namespace ccbox
