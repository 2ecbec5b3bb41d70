// Finds which entries of long allow and deny lists a destination meets, without going through them: the cost
// grows with the labels of the name, not with the entries.
//
// Filled by add(), then finish(), then const: any thread. A look-up allocates nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "domain_pattern.hpp"

namespace ccbox::egress {

class pattern_index {
 public:
  struct entry {
    bool allow = false;
    std::uint16_t port = 0;  // 0: every port
    std::uint32_t rule = 0;  // the caller's number
    bool operator<(const entry& other) const {
      return std::tie(allow, port, rule) < std::tie(other.allow, other.port, other.rule);
    }
  };
  // Any of those that deny it, of those that allow it, of those that allow it on other ports only; null:
  // none. The exact name is preferred to patterns, and longer patterns to shorter ones. Nothing is said about
  // allowing once something denies.
  struct verdict {
    const entry* deny = nullptr;
    const entry* allow = nullptr;
    const entry* other_port = nullptr;
  };

  void add(const domain_pattern& pattern, const entry& e);  // the pattern's own port does not count
  void finish();

  verdict of_name(std::string_view canonical_name, std::uint16_t port) const;
  verdict of_address(const ip_address& address, std::uint16_t port) const;  // not what it embeds

 private:
  using form = domain_pattern::form;
  struct key {
    form shape;
    std::string_view name, after;
    std::uint64_t hash;
  };
  struct node {
    std::uint64_t hash;
    std::uint32_t text;  // where the name, then what comes after the *, begin in texts_
    std::uint16_t name_size, after_size;
    std::uint32_t first_entry, entry_count;
    form shape;
  };
  struct slot {
    std::uint32_t node, tag;  // the upper half of the hash
  };
  class hashed_name;

  static key key_of(const ip_address& address);
  bool is(const node& n, const key& wanted) const;
  std::size_t slot_of(const key& wanted) const;
  void grow();
  void collect(const key& wanted, std::uint16_t port, verdict& out) const;
  const entry* find(const node& n, bool allow, std::uint16_t port) const;

  std::vector<slot> slots_;  // open addressing, at most half full
  std::vector<node> nodes_;
  std::string texts_;
  std::vector<std::pair<std::uint32_t, entry>> added_;  // with their nodes, until finish()
  std::vector<entry> entries_;                          // of each node together: deny first, by port
  // Labels of the longest *.suffix, and of what is before and after a * in the middle: what is longer is not
  // looked up.
  std::size_t longest_suffix_ = 0, longest_before_ = 0, longest_after_ = 0;
};

}  // namespace ccbox::egress
