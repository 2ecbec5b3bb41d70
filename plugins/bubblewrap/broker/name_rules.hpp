// Which names may not be made in which directory of the enclosure.
//
// Answers are functions of texts alone: the absolute path of a directory, as the kernel spells it at that
// moment, and a name in it. What is remembered of a text says nothing about which directory is there now.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker_orders.hpp"
#include "ccbox/glob.hpp"

namespace ccbox::bubblewrap {

class name_rules {
 public:
  // How far the globs of each anchor have got at a place.
  struct position {
    const void* anchor;
    glob_set::state deny, exempt;
    bool operator==(const position&) const = default;
  };
  using state = std::vector<position>;

  // Nothing, and a phrase in `problem`: a glob that does not compile.
  static std::optional<name_rules> make(const broker_orders& orders, std::string& problem);

  // In the directory at this absolute path, without `.`, `..` and `//` in it.
  const state& at(const std::string& directory) const;
  // In the directory `name` of a directory in state `from`.
  state into(const state& from, std::string_view name) const;

  // Is configuration of git among what they are about, in a directory in this state?
  bool guards_git(const state& in) const;

  // The rule that forbids the name, or null. It lives as long as this. One without conditions comes first.
  const name_rule* forbids(const state& in, std::string_view name) const;
  // A rule that forbids something below `name`: a symbolic link of this name would lead round it. Or null.
  const name_rule* leads_to(const state& in, std::string_view name) const;

 private:
  struct anchor {
    std::string guest;
    glob_set deny, exempt;
    std::vector<name_rule> rules;  // of `deny`, by its indices
    bool guards_git = false;
  };
  name_rules() = default;
  state walk(std::string_view directory) const;

  static constexpr std::size_t most_remembered = 4096;
  std::vector<std::unique_ptr<anchor>> anchors_;
  mutable std::unordered_map<std::string, state> remembered_;
};

}  // namespace ccbox::bubblewrap
