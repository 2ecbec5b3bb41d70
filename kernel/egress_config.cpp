#include "egress_config.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "lone_word.hpp"
#include "paths.hpp"
#include "shipped_config.hpp"
#include "yaml_document.hpp"

namespace ccbox {

namespace {

constexpr std::size_t max_entries = 20'000;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const auto first = text.find_first_not_of(blank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  while (!text.empty()) {
    const auto end = text.find('\n');
    out.push_back(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// `KEY: |` alone: entries follow, one a line.
bool opens_block(std::string_view line) {
  const auto words = trimmed(line);
  for (const std::string_view key : {"domains", "addresses", "allowed_resolved_ranges"})
    if (words.starts_with(key) && trimmed(words.substr(key.size())).starts_with(':') &&
        trimmed(trimmed(words.substr(key.size())).substr(1)) == "|")
      return true;
  return false;
}

// Behind the last line of the block that `opening` opens.
std::size_t end_of_block(const std::vector<std::string_view>& lines, std::size_t opening) {
  const auto outer = indentation(lines[opening]);
  auto end = opening + 1;
  while (end < lines.size() && (trimmed(lines[end]).empty() || indentation(lines[end]) > outer))
    ++end;
  return end;
}

// The file without its entries and comments, its lines where they were. The YAML parser costs about 60 ns for
// each byte, at every start of ccbox; the entries, most of the file, need no more than their lines.
std::string skeleton(const std::vector<std::string_view>& lines) {
  std::string out;
  for (std::size_t i = 0; i < lines.size();) {
    const bool is_comment = trimmed(lines[i]).starts_with('#');
    if (!is_comment) out += lines[i];
    out += '\n';
    const auto next = opens_block(lines[i]) ? end_of_block(lines, i) : i + 1;
    out.append(next - i - 1, '\n');
    i = next;
  }
  return out;
}

// What two spellings of one destination have in common: case and the root's dot mean nothing.
std::string folded(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool is_root = c == '.' && (i + 1 == pattern.size() || pattern[i + 1] == ':');
    if (!is_root) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

bool is_word(std::string_view name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

class reader {
 public:
  reader(std::vector<std::string_view> source, const std::string& name) : source_(std::move(source)) {
    out_.file = name;
  }

  result<egress_config> read(const yaml_value& root) {
    if (auto known = root.require_keys(
            {"settings", "enable", "baseline", "github", "ticketing", "optional", "denied", "floor"});
        !known)
      return known.error();
    const std::pair<const char*, std::vector<egress_group>*> sections[] = {
        {"baseline", &out_.baseline}, {"github", &out_.github}, {"ticketing", &out_.ticketing},
        {"optional", &out_.optional}, {"denied", &out_.denied}, {"floor", &out_.floor}};
    for (const auto& [key, groups] : sections) {
      // A section that is gone by accident would be a hole; one that is empty on purpose says so.
      if (!root.has(key))
        return root.error_here("missing section '" + std::string(key) + "'",
                               "write `" + std::string(key) + ": {}` if nothing is meant");
      if (auto read = read_section(key, root[key], *groups); !read) return read.error();
    }
    if (auto read = read_enable(root["enable"]); !read) return read.error();
    if (auto read = read_settings(root["settings"]); !read) return read.error();
    return std::move(out_);
  }

 private:
  error error_at(unsigned line, std::string_view what, std::string hint = {}) const {
    return {error_code::invalid_argument,
            printable(out_.file) + ":" + std::to_string(line) + ": " + std::string(what), std::move(hint)};
  }

  // The lines of a literal block: they stand in the file as they are.
  result<std::vector<egress_entry>> read_block(const yaml_value& value,
                                               std::map<std::string, unsigned>& seen) {
    std::vector<egress_entry> entries;
    if (value.is_null()) return entries;
    if (auto text = value.as_string(); !text) return text.error();
    const std::size_t opening = value.line() - 1;
    if (opening >= source_.size() || !opens_block(source_[opening]))
      return value.error_here("the entries are no literal block",
                              "write `|` behind the key, and each entry on a line of its own below it");
    for (std::size_t i = opening + 1, end = end_of_block(source_, opening); i < end; ++i) {
      const auto words = trimmed(source_[i]);
      const auto line = static_cast<unsigned>(i + 1);
      if (words.empty() || words.front() == '#') continue;
      auto entry = read_entry(words, line);
      if (!entry) return entry.error();
      const auto [first, fresh] = seen.emplace(folded(entry->pattern), line);
      if (!fresh)
        return error_at(line, "a second entry for " + quoted(entry->pattern) + ", first at line " +
                                  std::to_string(first->second));
      if (++entries_ > max_entries)
        return error_at(line, "more than " + std::to_string(max_entries) + " entries");
      entries.push_back(std::move(*entry));
    }
    return entries;
  }

  result<egress_entry> read_entry(std::string_view words, unsigned line) const {
    const auto end = words.find_first_of(" \t");
    const auto pattern = words.substr(0, end);
    const auto reason = end == words.npos ? std::string_view() : trimmed(words.substr(end));
    if (reason.empty())
      return error_at(line, quoted(pattern) + " has no reason", "write one behind it, on the same line");
    if (is_lone_word(pattern))
      return error_at(line, quoted(pattern) + " is a name without a dot", std::string(lone_word_hint));
    return egress_entry{std::string(pattern), std::string(reason), line};
  }

  result<void> read_section(const std::string& section, const yaml_value& value,
                            std::vector<egress_group>& groups) {
    const auto members = value.members();
    if (!members) return members.error();
    const bool is_floor = section == "floor";
    std::map<std::string, unsigned> seen;
    for (const auto& [name, body] : *members) {
      if (!is_word(name))
        return body.error_here("the group's name " + quoted(name) + " is no word of a-z, 0-9, - and _");
      const char* list = is_floor ? "addresses" : "domains";
      if (auto known = body.require_keys({"why", "git_hosts", list}); !known) return known.error();
      egress_group group;
      group.name = name;
      group.origin = section + "." + name;
      const auto why = body["why"].as_string();
      if (!body.has("why") || !why || trimmed(*why).empty())
        return body.error_here("group " + quoted(name) + " has no 'why'", "say in one line what it is for");
      group.why = *why;
      if (body.has("git_hosts")) {
        if (section != "baseline" && section != "github" && section != "optional")
          return body["git_hosts"].error_here("git_hosts is for what may be reached");
        const auto git_hosts = body["git_hosts"].as_bool();
        if (!git_hosts) return git_hosts.error();
        group.git_hosts = *git_hosts;
      }
      if (!body.has(list)) return body.error_here("group " + quoted(name) + " has no '" + list + "'");
      auto entries = read_block(body[list], seen);
      if (!entries) return entries.error();
      group.entries = std::move(*entries);
      group.enabled = section != "optional";
      groups.push_back(std::move(group));
    }
    return {};
  }

  result<void> read_enable(const yaml_value& value) {
    const auto names = value.items();
    if (!names) return names.error();
    for (const auto& item : *names) {
      const auto name = item.as_string();
      if (!name) return name.error();
      const auto found = std::find_if(out_.optional.begin(), out_.optional.end(),
                                      [&](const egress_group& g) { return g.name == *name; });
      if (found == out_.optional.end()) {
        std::string known = "the optional groups are:";
        for (const auto& g : out_.optional)
          known += " " + g.name;
        return item.error_here("there is no optional group " + quoted(*name), known);
      }
      found->enabled = true;
    }
    return {};
  }

  result<std::string> one_of(const yaml_value& value, const std::vector<std::string_view>& choices) const {
    const auto text = value.as_string();
    if (!text) return text.error();
    if (std::find(choices.begin(), choices.end(), *text) != choices.end()) return *text;
    std::string hint = "choose one of:";
    for (const auto choice : choices)
      hint += " " + std::string(choice);
    return value.error_here("there is no choice " + quoted(*text), hint);
  }

  result<void> read_settings(const yaml_value& value) {
    if (auto known = value.require_keys({"all_proxy", "sni", "upstream", "upstream_credentials_file",
                                         "bridge", "allowed_resolved_ranges", "limits"});
        !known)
      return known.error();
    const std::pair<const char*, std::vector<std::string_view>> choices[] = {
        {"all_proxy", {"socks5h", "http", "off"}},
        {"sni", {"off", "log", "enforce"}},
        {"bridge", {"direct", "socat"}}};
    for (const auto& [key, allowed] : choices) {
      if (!value.has(key)) continue;
      auto choice = one_of(value[key], allowed);
      if (!choice) return choice.error();
      if (std::string_view(key) == "bridge")
        out_.bridge = *choice == "socat" ? egress_bridge::socat : egress_bridge::direct;
      else
        out_.options.emplace_back(key, std::move(*choice));
    }
    if (auto read = read_upstream(value); !read) return read;
    std::map<std::string, unsigned> seen;
    auto ranges = read_block(value["allowed_resolved_ranges"], seen);
    if (!ranges) return ranges.error();
    out_.resolved_ranges = std::move(*ranges);
    return read_limits(value["limits"]);
  }

  result<void> read_upstream(const yaml_value& settings) {
    if (settings.has("upstream") && !settings["upstream"].is_null()) {
      const auto value = settings["upstream"];
      auto upstream = value.as_string();
      if (!upstream) return upstream.error();
      if (!upstream->empty()) {
        if (!upstream->starts_with("http://"))
          return value.error_here("upstream " + quoted(*upstream) + " is no http://HOST:PORT");
        // It would be in this file, and in every message that names the proxy.
        if (upstream->find('@') != upstream->npos)
          return value.error_here("upstream has a user name or password in it",
                                  "put `user:password` into a file with mode 0600 and name it by "
                                  "upstream_credentials_file");
        out_.options.emplace_back("upstream", std::move(*upstream));
      }
    }
    if (settings.has("upstream_credentials_file") && !settings["upstream_credentials_file"].is_null()) {
      const auto value = settings["upstream_credentials_file"];
      auto file = value.as_string();
      if (!file) return file.error();
      if (!file->empty() && file->front() != '/')
        return value.error_here("upstream_credentials_file " + quoted(*file) + " is no absolute path");
      if (!file->empty()) out_.options.emplace_back("upstream_credentials_file", std::move(*file));
    }
    return {};
  }

  result<void> read_limits(const yaml_value& value) {
    if (auto fine = value.require_keys({"max_tunnels", "max_pending", "connect_timeout_ms", "head_timeout_ms",
                                        "idle_timeout_ms", "life_limit_ms", "resolve_timeout_ms"});
        !fine)
      return fine;
    // The plugin's own ranges, so that what it would refuse at a launch is refused here, with its line.
    constexpr std::int64_t most = 65536, week_ms = 7LL * 24 * 3600 * 1000;
    constexpr std::pair<std::string_view, std::int64_t> known[] = {
        {"max_tunnels", most},          {"max_pending", most},        {"connect_timeout_ms", week_ms},
        {"head_timeout_ms", week_ms},   {"idle_timeout_ms", week_ms}, {"life_limit_ms", week_ms},
        {"resolve_timeout_ms", week_ms}};
    for (const auto& [key, highest] : known) {
      if (!value.has(key)) continue;
      const auto number = value[key].as_integer();
      if (!number) return number.error();
      if (*number < 1 || *number > highest)
        return value[key].error_here(std::string(key) + " must be between 1 and " + std::to_string(highest));
      out_.options.emplace_back(key, std::to_string(*number));
    }
    return {};
  }

  std::vector<std::string_view> source_;
  egress_config out_;
  std::size_t entries_ = 0;
};

}  // namespace

std::string_view to_string(egress_bridge bridge) {
  return bridge == egress_bridge::socat ? "socat" : "direct";
}

std::string egress_config::where(const egress_entry& entry) const {
  return printable(file) + ":" + std::to_string(entry.line);
}

egress_rule to_rule(const egress_config& config, const egress_group& group, const egress_entry& entry,
                    egress_action action) {
  return {action, group.git_hosts, entry.pattern, group.origin, entry.reason, config.where(entry)};
}

result<void> check_entries(const egress_config& config, const egress_plugin& plugin) {
  const std::pair<const std::vector<egress_group>*, egress_action> sections[] = {
      {&config.baseline, egress_action::allow},  {&config.github, egress_action::allow},
      {&config.ticketing, egress_action::allow}, {&config.optional, egress_action::allow},
      {&config.denied, egress_action::deny},     {&config.floor, egress_action::floor}};
  for (const auto& [groups, action] : sections)
    for (const auto& group : *groups)
      for (const auto& entry : group.entries)
        if (auto fine = plugin.check_rule(to_rule(config, group, entry, action)); !fine) return fine;
  egress_group settings;
  settings.origin = "settings.allowed_resolved_ranges";
  for (const auto& entry : config.resolved_ranges)
    if (auto fine = plugin.check_rule(to_rule(config, settings, entry, egress_action::resolved)); !fine)
      return fine;
  return {};
}

result<egress_config> parse_egress_config(std::string_view text, const std::string& name) {
  // The entries too are text without control characters, which the parser would have looked at.
  auto lines = lines_of(text);
  if (auto fine = check_yaml_text(text, name); !fine) return fine.error();
  auto root = load_yaml_text(skeleton(lines), name);
  if (!root) return root.error();
  if (root->is_null())
    return error{error_code::invalid_argument, printable(name) + ": is empty",
                 "a file of egress rules says `baseline: {}` if nothing may be reached"};
  return reader(std::move(lines), name).read(*root);
}

result<egress_config> load_egress_config(const std::string& path) {
  std::string file = path;
  if (file.empty()) {
    auto found = find_installation();
    if (!found) return found.error();
    file = found->egress;
  }
  auto text = read_yaml_file(file);
  if (!text) return text.error();
  if (auto shipped = shipped_egress(*text, file)) return std::move(*shipped);
  return parse_egress_config(*text, file);
}

}  // namespace ccbox
