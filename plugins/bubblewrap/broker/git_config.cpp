#include "broker/git_config.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "ccbox/glob.hpp"

namespace ccbox::bubblewrap {

namespace {

// Not the C library's: a locale has no say.
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_key_character(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
std::string small(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view after_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  return text;
}

bool is_over(std::string_view rest) {
  rest = after_blanks(rest);
  return rest.empty() || rest.front() == '#' || rest.front() == ';';
}

bool has_control_characters(std::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

bool take_word(std::string_view& from, std::string& word) {
  if (from.empty() || !is_letter(from.front())) return false;
  const auto size =
      static_cast<std::size_t>(std::find_if_not(from.begin(), from.end(), is_key_character) - from.begin());
  word = small(from.substr(0, size));
  from.remove_prefix(size);
  return true;
}

// `[section]` or `[section "subsection"]`; `prefix` is what its keys begin with.
bool parse_section(std::string_view line, std::string& prefix) {
  line.remove_prefix(1);
  if (!take_word(line, prefix) || line.empty()) return false;
  prefix += '.';
  if (line.front() == ']') return is_over(line.substr(1));
  if (!is_blank(line.front())) return false;
  line = after_blanks(line);
  if (line.empty() || line.front() != '"') return false;
  for (line.remove_prefix(1); !line.empty() && line.front() != '"'; line.remove_prefix(1)) {
    if (line.front() == '\\') line.remove_prefix(1);
    if (line.empty() || line.front() == '\t') return false;
    prefix += line.front();
  }
  prefix += '.';
  return line.starts_with("\"]") && is_over(line.substr(2));
}

bool parse_value(std::string_view text, std::string& value) {
  bool quoted = false;
  std::size_t blanks = 0;
  bool tab = false;
  for (; !text.empty(); text.remove_prefix(1)) {
    char c = text.front();
    if (!quoted && is_blank(c)) {
      if (!value.empty()) ++blanks;
      tab = tab || (c == '\t' && !value.empty());
      continue;
    }
    if (!quoted && (c == '#' || c == ';')) break;
    if (tab) return false;  // versions of git differ on what becomes of it
    value.append(std::exchange(blanks, 0), ' ');
    if (c == '"') {
      // Versions of git differ on blanks around empty quotes.
      if (!quoted && text.substr(1).starts_with('"')) return false;
      quoted = !quoted;
      continue;
    }
    if (c == '\\') {
      text.remove_prefix(1);
      if (text.empty()) return false;  // a continued line
      c = text.front();
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c != '"' && c != '\\')
        return false;
    }
    value += c;
  }
  return !quoted;
}

using value_check = bool (*)(const std::string& value);

bool is_one_of(const std::string& value, std::initializer_list<std::string_view> values) {
  return std::find(values.begin(), values.end(), small(value)) != values.end();
}
bool is_switch(const std::string& value) {
  return is_one_of(value, {"true", "false", "yes", "no", "on", "off", "1", "0"});
}
bool is_off(const std::string& value) {
  return is_one_of(value, {"false", "no", "off", "0"});
}
bool is_line(const std::string& value) {
  return !has_control_characters(value);
}
bool is_any(const std::string&) {
  return true;
}
bool is_name(const std::string& value) {
  return is_line(value) && !value.starts_with('-');
}
bool is_version(const std::string& value) {
  return value == "0" || value == "1";
}
bool is_hash(const std::string& value) {
  return is_one_of(value, {"sha1", "sha256"});
}
bool is_log(const std::string& value) {
  return is_switch(value) || is_one_of(value, {"always"});
}
bool is_crlf(const std::string& value) {
  return is_switch(value) || is_one_of(value, {"input", "warn"});
}
bool is_eol(const std::string& value) {
  return is_one_of(value, {"lf", "crlf", "native"});
}
bool is_tag_option(const std::string& value) {
  return is_one_of(value, {"--tags", "--no-tags"});
}
bool is_colour_switch(const std::string& value) {
  return is_one_of(value, {"true", "false", "auto", "always", "never"});
}
bool is_rebase(const std::string& value) {
  return is_switch(value) || is_one_of(value, {"merges", "m", "interactive", "i"});
}
bool is_fast_forward(const std::string& value) {
  return is_switch(value) || is_one_of(value, {"only"});
}
bool is_conflict_style(const std::string& value) {
  return is_one_of(value, {"merge", "diff3", "zdiff3"});
}
bool is_push_default(const std::string& value) {
  return is_one_of(value, {"nothing", "current", "upstream", "tracking", "simple", "matching"});
}

// Of a protocol that git speaks itself: others, and `helper::address`, are programs that it runs.
bool is_url(const std::string& value) {
  if (!is_name(value)) return false;
  const auto colons = value.find("::");
  if (colons != value.npos && value.find('/') > colons) return false;
  const auto scheme = value.find("://");
  if (scheme == value.npos) return true;
  return is_one_of(value.substr(0, scheme), {"https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"});
}

struct harmless {
  std::string_view section, name;  // `*`: any name
  bool has_subsection;
  value_check check;
};

// Not here, though of the same kind: promisor remotes, for which git status would fetch from an address that
// is written here; `core.protect*`, which keep git from writing into .git.
constexpr harmless list[] = {
    {"core", "repositoryformatversion", false, is_version},
    {"core", "filemode", false, is_switch},
    {"core", "bare", false, is_switch},
    {"core", "logallrefupdates", false, is_log},
    {"core", "ignorecase", false, is_switch},
    {"core", "precomposeunicode", false, is_switch},
    {"core", "symlinks", false, is_switch},
    {"core", "autocrlf", false, is_crlf},
    {"core", "eol", false, is_eol},
    {"core", "safecrlf", false, is_crlf},
    {"extensions", "objectformat", false, is_hash},
    {"extensions", "worktreeconfig", false, is_switch},
    {"user", "name", false, is_line},
    {"user", "email", false, is_line},
    {"author", "name", false, is_line},
    {"author", "email", false, is_line},
    {"committer", "name", false, is_line},
    {"committer", "email", false, is_line},
    {"init", "defaultbranch", false, is_name},
    {"remote", "url", true, is_url},
    {"remote", "pushurl", true, is_url},
    {"remote", "fetch", true, is_name},
    {"remote", "push", true, is_name},
    {"remote", "tagopt", true, is_tag_option},
    {"remote", "mirror", true, is_switch},
    {"remote", "prune", true, is_switch},
    {"branch", "remote", true, is_url},
    {"branch", "merge", true, is_name},
    {"branch", "rebase", true, is_rebase},
    {"branch", "description", true, is_any},
    {"submodule", "url", true, is_url},
    {"submodule", "active", true, is_switch},
    {"submodule", "branch", true, is_name},
    {"submodule", "active", false, is_line},
    {"pull", "rebase", false, is_rebase},
    {"pull", "ff", false, is_fast_forward},
    {"push", "default", false, is_push_default},
    {"merge", "ff", false, is_fast_forward},
    {"merge", "conflictstyle", false, is_conflict_style},
    {"fetch", "prune", false, is_switch},
    {"commit", "gpgsign", false, is_off},
    {"tag", "gpgsign", false, is_off},
    {"advice", "*", false, is_switch},
    {"color", "*", false, is_colour_switch},
};

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const auto name = path.substr(0, path.find('/'));
    if (!name.empty()) out.push_back(name);
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return out;
}

bool is_git_directory(std::string_view name) {
  return fold_name(name) == ".git";
}

// Of a submodule: `../` so often that it stays in the tree around the outermost .git, then plain names.
bool is_work_tree(const std::string& value, std::string_view directory) {
  auto at = components(directory);
  const auto top =
      static_cast<std::size_t>(std::find_if(at.begin(), at.end(), is_git_directory) - at.begin());
  if (top == at.size() || !is_line(value) || !value.starts_with("../")) return false;
  bool went_down = false;
  for (const auto name : components(value)) {
    if (name == "." || is_git_directory(name) || (name == ".." && (went_down || at.empty()))) return false;
    went_down = went_down || name != "..";
    if (name == "..")
      at.pop_back();
    else
      at.push_back(name);
  }
  return went_down && at.size() > top && std::none_of(at.begin(), at.end(), is_git_directory);
}

bool is_harmless(const git_setting& setting, std::string_view directory) {
  const std::string_view key = setting.key;
  const auto first = key.find('.'), last = key.rfind('.');
  const auto section = key.substr(0, first), name = key.substr(last + 1);
  if (key == "core.worktree") return is_work_tree(setting.value, directory);
  if (section == "submodule" && first != last)
    for (const auto part : components(key.substr(first + 1, last - first - 1)))
      if (part == ".." || part == ".") return false;
  return std::any_of(std::begin(list), std::end(list), [&](const harmless& each) {
    return each.section == section && (each.name == name || each.name == "*") &&
           each.has_subsection == (first != last) && each.check(setting.value);
  });
}

}  // namespace

std::optional<std::vector<git_setting>> parse_git_config(std::string_view text, std::string& problem) {
  std::vector<git_setting> out;
  std::string prefix;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    const bool is_ended = end < text.size();
    text.remove_prefix(is_ended ? end + 1 : end);
    if (is_ended && line.ends_with('\r')) line.remove_suffix(1);
    bool fits = !has_control_characters(line);
    line = after_blanks(line);
    if (fits && is_over(line)) continue;
    if (fits && line.front() == '[') {
      fits = parse_section(line, prefix);
    } else if (fits) {
      git_setting setting;
      fits = !prefix.empty() && take_word(line, setting.key);
      line = after_blanks(line);
      fits = fits && line.starts_with('=') && parse_value(line.substr(1), setting.value);
      setting.key.insert(0, prefix);
      if (fits) out.push_back(std::move(setting));
    }
    if (fits) continue;
    problem = "line " + std::to_string(number) + " is not written as git itself writes its configuration";
    return std::nullopt;
  }
  return out;
}

std::string objection_to_git_config(std::string_view text, std::string_view directory) {
  std::string problem;
  const auto settings = parse_git_config(text, problem);
  if (!settings) return problem;
  constexpr std::size_t longest = 200;
  for (const auto& setting : *settings)
    if (!is_harmless(setting, directory))
      return setting.key.substr(0, longest) + " is not a setting, or has not a value, that can do no harm";
  return {};
}

}  // namespace ccbox::bubblewrap
