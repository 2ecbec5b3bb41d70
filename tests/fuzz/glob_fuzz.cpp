#include "glob.hpp"

#include <algorithm>

#include "fuzz/target.hpp"

namespace {

using ccbox::glob;
using ccbox::glob_set;

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> out;
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find('/', start), path.size());
    const auto part = path.substr(start, end - start);
    if (!part.empty() && part != ".") out.push_back(std::string(part));
    start = end + 1;
  }
  return out;
}

// The definition, straight from the header's words: slow, and on folded names of ASCII only.
bool name_matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return name_matches(pattern.substr(1), name) || (!name.empty() && name_matches(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         name_matches(pattern.substr(1), name.substr(1));
}

bool path_matches(const std::vector<std::string>& pattern, std::size_t p,
                  const std::vector<std::string>& path, std::size_t at) {
  if (p == pattern.size()) return at == path.size();
  if (pattern[p] == "**") {
    // Any number of components; at least one where it is the last.
    for (std::size_t skip = at + (p + 1 == pattern.size() ? 1 : 0); skip <= path.size(); ++skip)
      if (path_matches(pattern, p + 1, path, skip)) return true;
    return false;
  }
  return at < path.size() && name_matches(pattern[p], path[at]) && path_matches(pattern, p + 1, path, at + 1);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void compare_with_definition(std::string_view pattern, const std::vector<std::string>& path, bool matched) {
  if (!is_ascii(pattern) || pattern.size() > 12 || std::count(pattern.begin(), pattern.end(), '*') > 6)
    return;
  std::vector<std::string> folded_path, parts;
  std::size_t bytes = 0;
  for (const auto& name : path) {
    if (!is_ascii(name)) return;
    bytes += name.size();
    folded_path.push_back(ccbox::fold_name(name));
  }
  if (path.size() > 8 || bytes > 24) return;
  if (pattern.find('/') == pattern.npos) parts.push_back("**");
  for (const auto& part : components(pattern))
    parts.push_back(ccbox::fold_name(part));
  if (parts.size() > 1 && parts[0] == "**" && parts[1] == "**" && parts.size() == 2)
    parts.erase(parts.begin());
  fuzz::require(path_matches(parts, 0, folded_path, 0) == matched, "a glob means what its header says");
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

// What is left of the glob below a directory matches there what the glob matches from above.
void check_remaining(const glob& g, const std::vector<std::string>& path, bool matched, bool within) {
  for (std::size_t depth = 1; depth < path.size(); ++depth) {
    auto at = g.start();
    std::string rest;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (i < depth)
        at = g.step(at, ccbox::fold_name(path[i]));
      else
        rest += (rest.empty() ? "" : "/") + path[i];
    }
    bool rest_matches = false;
    for (const auto& text : g.remaining(at)) {
      const auto compiled = ccbox::compile_glob(text);
      fuzz::require(compiled.has_value(), "what remains of a glob is a glob: " + ccbox::quoted(text));
      rest_matches = rest_matches || compiled->matches(rest);
    }
    fuzz::require(rest_matches == matched, "what remains of a glob says the same from below");
    if (g.accepts_all_below(at))
      fuzz::require(within, "all below matches, so this does, or what leads to it");
  }
}

void check_set(const glob& g, const std::vector<std::string>& path, bool matched) {
  glob_set set;
  for (const auto* other : {"*.key", "**/.git/hooks/*", "hooks/*", "**"})
    set.add(*ccbox::compile_glob(other));
  set.add(g);
  set.add(g);
  auto at = set.start();
  std::vector<std::uint32_t> accepted;
  for (const auto& name : path) {
    accepted.clear();
    at = set.step(at, name, &accepted);
  }
  for (const std::uint32_t mine : {4u, 5u}) {
    fuzz::require((std::count(accepted.begin(), accepted.end(), mine) == 1) == matched,
                  "a glob among others matches as it does alone");
  }
}

// The first line is the glob, the rest a path.
void run(std::string_view input) {
  const auto line = std::min(input.find('\n'), input.size());
  const auto pattern = input.substr(0, line);
  const auto path = input.substr(std::min(line + 1, input.size()));
  const auto compiled = ccbox::compile_glob(pattern);
  if (!compiled) return fuzz::require_good_error(compiled.error(), {ccbox::error_code::invalid_argument});
  fuzz::require(compiled->text() == pattern, "a glob keeps its spelling");

  const auto names = components(path);
  const bool matched = compiled->matches(path);
  if (matched) fuzz::require(compiled->matches_within(path), "what matches matches within itself");
  fuzz::require(compiled->matches_within(std::string(path) + "/below") || !matched,
                "so does what is below it");
  fuzz::require(compiled->matches(upper(path)) == matched, "the case of a path does not matter");
  const auto shouted = ccbox::compile_glob(upper(pattern));
  fuzz::require(shouted && shouted->matches(path) == matched, "nor does the case of a glob");
  compare_with_definition(pattern, names, matched);
  if (names.size() <= 16) {
    check_remaining(*compiled, names, matched, compiled->matches_within(path));
    check_set(*compiled, names, matched);
  }
}

const fuzz::registered target("glob", run);

}  // namespace
