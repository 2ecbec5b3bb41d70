// The globs of name rules: which names below a directory they mean.
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

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "result.hpp"

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

  // Refuses: empty, absolute, NUL, `.` and `..` as components, over 4096 bytes or 62 components.
  static result<glob> compile(std::string_view pattern);

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

}  // namespace ccbox
