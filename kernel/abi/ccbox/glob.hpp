// The globs of name rules (CCBOX_KIND_NAME_DENY, CCBOX_KIND_NAME_EXEMPT): which names below a directory they
// mean. The host matches with this very code; a backend that does so too cannot disagree with it.
//
// `*.key`            a name, at any depth (the same as `**/*.key`)
// `**/.git/hooks/*`  a path, at any depth
// `hooks/*`          a path right below the directory the glob is anchored to
// `./config`         a name right below it
//
// `*` is any bytes within a component, `?` one character, `**` as a whole component any number of components,
// even none (last: at least one). Everything else, `[`, `{`, `\`, newlines and bytes that are no UTF-8, is
// literal.
//
// Matching has no regard to case, in the way case-insensitive file systems have none: ASCII letters are
// folded, so are the two other letters that fold to ASCII (U+017F, U+212A), and code points that such file
// systems ignore are skipped.
//
// A path matches component by component: a glob of n components has a set of positions (0..n) that it can be
// at, kept as bits. Nothing backtracks over components; within one, work is at most pattern times text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ccbox {

// `*` is any bytes, '/' too; `?` one character. With regard to case unless `fold` (then
// ASCII letters have none).
bool wildcard_match(std::string_view pattern, std::string_view text, bool fold = false);

bool has_wildcard(std::string_view text);

// A name as matching sees it.
std::string fold_name(std::string_view name);

class glob {
 public:
  using positions = std::uint64_t;
  static constexpr std::size_t most_components = 62;

  // Nothing, and in `problem` a phrase such as "is empty", for: empty, absolute, NUL, `..` as a component, a
  // component that no name can be, over 4096 bytes or 62 components.
  static std::optional<glob> compile(std::string_view pattern, std::string_view& problem);

  const std::string& text() const { return text_; }

  positions start() const { return closure(1); }
  // `folded_name` from fold_name().
  positions step(positions at, std::string_view folded_name) const;
  bool accepts(positions at) const { return (at >> components_.size()) & 1; }
  // At a directory: does everything below it match?
  bool accepts_all_below(positions at) const;

  // The whole relative path matches, or (within) it or a directory that leads to it does.
  bool matches(std::string_view relative_path) const;
  bool matches_within(std::string_view relative_path) const;

  // At a directory: the globs, relative to it, that the rest of this one amounts to. Without those that say
  // no more than another one of them.
  std::vector<std::string> remaining(positions at) const;

 private:
  friend class glob_set;
  struct component {
    std::string text;    // as written
    std::string folded;  // empty for `**`
    bool any_depth = false;
    bool wild = false;
    bool is_suffix = false;  // `*` and nothing wild after it
    bool matches(std::string_view folded_name) const;
  };
  positions closure(positions at) const;

  std::string text_;
  std::vector<component> components_;
};

// Many globs matched together: a tree walk with hundreds of them costs one hash look-up a name in the usual
// case.
class glob_set {
 public:
  // Of globs that have got somewhere (those that begin with `**` are always at their beginning besides).
  using state = std::vector<std::pair<std::uint32_t, glob::positions>>;

  void add(glob g);
  std::size_t size() const { return globs_.size(); }
  const glob& operator[](std::size_t i) const { return globs_[i]; }

  state start() const;
  // The state in the directory or at the file `name`; indices of the globs that match it go to `accepted`.
  state step(const state& at, std::string_view name, std::vector<std::uint32_t>* accepted = nullptr) const;
  // The same for those alone that have got somewhere: what a link at such a place leads to.
  state step_started(const state& at, std::string_view name,
                     std::vector<std::uint32_t>* accepted = nullptr) const;
  // The globs that match everything below a directory in this state.
  void all_below(const state& at, std::vector<std::uint32_t>& accepted) const;

  // Positions of glob `i` in this state.
  glob::positions positions_of(const state& at, std::size_t i) const;

 private:
  void advance(state& next, std::uint32_t index, glob::positions from, std::string_view folded_name,
               std::vector<std::uint32_t>* accepted) const;

  struct name_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  std::vector<glob> globs_;
  // Those that begin with `**`, by what comes next: a literal name, or not.
  std::unordered_map<std::string, std::vector<std::uint32_t>, name_hash, std::equal_to<>> by_literal_;
  std::vector<std::uint32_t> wild_;
};

namespace glob_detail {

// Length of the UTF-8 character at the start of `text`; 1 where there is none.
inline std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  if (length > text.size()) return 1;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 1;
  return length;
}

inline char32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(character[i]));
  };
  switch (character.size()) {
    case 2:
      return ((byte(0) & 0x1f) << 6) | (byte(1) & 0x3f);
    case 3:
      return ((byte(0) & 0x0f) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f);
    case 4:
      return ((byte(0) & 0x07) << 18) | ((byte(1) & 0x3f) << 12) | ((byte(2) & 0x3f) << 6) | (byte(3) & 0x3f);
    default:
      return byte(0);
  }
}

// What HFS+ and casefolding ext4 skip in names: `.g<U+200C>it` is `.git` there.
inline bool is_ignorable(char32_t point) {
  return point == 0x00ad || point == 0x034f || point == 0x061c || point == 0x115f || point == 0x1160 ||
         point == 0x17b4 || point == 0x17b5 || (point >= 0x180b && point <= 0x180f) ||
         (point >= 0x200b && point <= 0x200f) || (point >= 0x202a && point <= 0x202e) ||
         (point >= 0x2060 && point <= 0x206f) || point == 0x3164 || (point >= 0xfe00 && point <= 0xfe0f) ||
         point == 0xfeff || point == 0xffa0 || (point >= 0xfff0 && point <= 0xfff8) ||
         (point >= 0xe0000 && point <= 0xe0fff);
}

inline char fold_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline bool is_folded(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char c) { return (c >= 'A' && c <= 'Z') || (c & 0x80); });
}

// One component, or any text. Returns to the last `*` only, so it is at most pattern times text.
template <bool Fold = false>
inline bool match(std::string_view pattern, std::string_view text) {
  const auto same = [](char a, char b) { return Fold ? fold_ascii(a) == fold_ascii(b) : a == b; };
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t += character_length(text.substr(t));
    } else if (p < pattern.size() && same(pattern[p], text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

template <class Function>
void for_each_component(std::string_view path, Function function) {
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    if (!part.empty() && part != "." && !function(part)) return;
    if (slash == std::string_view::npos) return;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace glob_detail

inline bool glob::component::matches(std::string_view folded_name) const {
  if (!wild) return folded == folded_name;
  if (is_suffix) return folded_name.ends_with(std::string_view(folded).substr(1));
  return glob_detail::match(folded, folded_name);
}

inline bool has_wildcard(std::string_view text) {
  return text.find_first_of("*?") != std::string_view::npos;
}

inline std::string fold_name(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const auto character = name.substr(0, glob_detail::character_length(name));
    name.remove_prefix(character.size());
    if (character.size() == 1) {
      out += glob_detail::fold_ascii(character[0]);
      continue;
    }
    const char32_t point = glob_detail::code_point(character);
    if (glob_detail::is_ignorable(point)) continue;
    if (point == 0x017f)
      out += 's';
    else if (point == 0x212a)
      out += 'k';
    else
      out += character;
  }
  return out;
}

inline bool wildcard_match(std::string_view pattern, std::string_view text, bool fold) {
  return fold ? glob_detail::match<true>(pattern, text) : glob_detail::match(pattern, text);
}

inline std::optional<glob> glob::compile(std::string_view pattern, std::string_view& problem) {
  const auto refuse = [&](std::string_view why) {
    problem = why;
    return std::nullopt;
  };
  if (pattern.empty()) return refuse("is empty");
  if (pattern.size() > 4096) return refuse("is longer than 4096 bytes");
  if (pattern.find('\0') != std::string_view::npos) return refuse("contains a NUL byte");
  if (pattern.front() == '/') return refuse("is absolute");
  glob out;
  out.text_ = pattern;
  const bool is_name = pattern.find('/') == std::string_view::npos;
  if (is_name && pattern != "**") out.components_.push_back({"**", "", true, true, false});
  bool bad = false;
  glob_detail::for_each_component(pattern, [&](std::string_view part) {
    if (part == "..") bad = true;
    component c;
    c.text = part;
    c.any_depth = part == "**";
    c.wild = has_wildcard(part);
    if (!c.any_depth) c.folded = fold_name(part);
    c.is_suffix = part[0] == '*' && !has_wildcard(part.substr(1));
    // `**/**` is `**`, so that every component but a last `**` advances on exactly one name.
    if (!(c.any_depth && !out.components_.empty() && out.components_.back().any_depth))
      out.components_.push_back(std::move(c));
    return true;
  });
  if (bad) return refuse("has `..` as a component");
  if (out.components_.empty()) return refuse("names nothing");
  for (const auto& c : out.components_)
    if (!c.any_depth && c.folded.empty()) return refuse("has a component that no name can be");
  if (out.components_.size() > most_components) return refuse("has more than 62 components");
  return out;
}

inline glob::positions glob::closure(positions at) const {
  // `**` may stand for nothing, but for the last one: it takes at least one name.
  for (std::size_t i = 0; i + 1 < components_.size(); ++i)
    if (((at >> i) & 1) && components_[i].any_depth) at |= positions{1} << (i + 1);
  return at;
}

inline glob::positions glob::step(positions at, std::string_view folded_name) const {
  positions next = 0;
  for (std::size_t i = 0; i < components_.size(); ++i) {
    if (!((at >> i) & 1)) continue;
    const auto& c = components_[i];
    if (c.any_depth) {
      next |= positions{1} << i;
      if (i + 1 == components_.size()) next |= positions{1} << (i + 1);
    } else if (c.matches(folded_name)) {
      next |= positions{1} << (i + 1);
    }
  }
  return closure(next);
}

inline bool glob::accepts_all_below(positions at) const {
  const auto last = components_.size() - 1;
  if (!((at >> last) & 1)) return false;
  const auto& c = components_[last];
  return c.any_depth || c.folded.find_first_not_of('*') == std::string::npos;
}

inline bool glob::matches(std::string_view relative_path) const {
  positions at = start();
  bool any = false;
  glob_detail::for_each_component(relative_path, [&](std::string_view part) {
    any = true;
    at = step(at, fold_name(part));
    return at != 0;
  });
  return any && accepts(at);
}

inline bool glob::matches_within(std::string_view relative_path) const {
  positions at = start();
  bool accepted = false;
  glob_detail::for_each_component(relative_path, [&](std::string_view part) {
    at = step(at, fold_name(part));
    accepted = accepts(at);
    return at != 0 && !accepted;
  });
  return accepted;
}

inline std::vector<std::string> glob::remaining(positions at) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < components_.size(); ++i) {
    if (!((at >> i) & 1)) continue;
    // `**/x` says all that `x` says.
    if (i > 0 && ((at >> (i - 1)) & 1) && components_[i - 1].any_depth) continue;
    std::string text;
    for (std::size_t c = i; c < components_.size(); ++c) {
      if (!text.empty()) text += '/';
      text += components_[c].text;  // not folded: folding twice is not always folding once
    }
    // A single component would be taken for a name at any depth.
    if (i + 1 == components_.size() && !components_[i].any_depth) text = "./" + text;
    out.push_back(std::move(text));
  }
  return out;
}

inline void glob_set::add(glob g) {
  const auto index = static_cast<std::uint32_t>(globs_.size());
  if (g.components_[0].any_depth) {
    if (g.components_.size() > 1 && !g.components_[1].wild)
      by_literal_[g.components_[1].folded].push_back(index);
    else
      wild_.push_back(index);
  }
  globs_.push_back(std::move(g));
}

inline glob_set::state glob_set::start() const {
  state at;
  for (std::uint32_t i = 0; i < globs_.size(); ++i)
    if (!globs_[i].components_[0].any_depth) at.emplace_back(i, globs_[i].start());
  return at;
}

inline glob::positions glob_set::positions_of(const state& at, std::size_t i) const {
  glob::positions out = globs_[i].components_[0].any_depth ? globs_[i].start() : 0;
  for (const auto& [index, positions] : at)
    if (index == i) out |= positions;
  return out;
}

inline void glob_set::advance(state& next, std::uint32_t index, glob::positions from,
                              std::string_view folded_name, std::vector<std::uint32_t>* accepted) const {
  const auto& g = globs_[index];
  auto positions = g.step(from, folded_name);
  // Where `**/...` always is besides is not worth keeping.
  if (g.components_[0].any_depth && g.components_.size() > 1) positions &= ~g.start();
  if (positions == 0) return;
  if (accepted && g.accepts(positions)) accepted->push_back(index);
  next.emplace_back(index, positions);
}

inline glob_set::state glob_set::step(const state& at, std::string_view name,
                                      std::vector<std::uint32_t>* accepted) const {
  std::string storage;
  if (!glob_detail::is_folded(name)) name = storage = fold_name(name);
  state next;
  for (const auto& [index, positions] : at) {
    const auto& g = globs_[index];
    advance(next, index, g.components_[0].any_depth ? positions | g.start() : positions, name, accepted);
  }
  const auto fresh = [&](std::uint32_t index) {
    const bool seen =
        std::any_of(at.begin(), at.end(), [&](const auto& entry) { return entry.first == index; });
    if (!seen) advance(next, index, globs_[index].start(), name, accepted);
  };
  if (const auto found = by_literal_.find(name); found != by_literal_.end())
    for (const auto index : found->second)
      fresh(index);
  for (const auto index : wild_)
    fresh(index);
  return next;
}

inline glob_set::state glob_set::step_started(const state& at, std::string_view name,
                                              std::vector<std::uint32_t>* accepted) const {
  const std::string folded = fold_name(name);
  state next;
  for (const auto& [index, positions] : at)
    advance(next, index, positions, folded, accepted);
  return next;
}

inline void glob_set::all_below(const state& at, std::vector<std::uint32_t>& accepted) const {
  for (const auto& [index, positions] : at)
    if (globs_[index].accepts_all_below(positions)) accepted.push_back(index);
}

}  // namespace ccbox
