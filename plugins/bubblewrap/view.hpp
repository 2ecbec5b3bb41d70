// What an enclosure sees: the mounts that a plan's rules come to, one a place, in an order that is safe to
// apply.
//
// Promises: the most specific path has the last word, in whatever order rules come; a read deny that exists
// inside a visible mount is covered by an empty, unreadable, read-only mask; a write deny that exists inside
// a writable mount is bound read-only over itself, and every directory between it and the mount is pinned (a
// mount point cannot be renamed or removed); nothing is ever made in a host directory: every mount point
// either exists there or lies in private memory. A deny that no mount can hold (a pattern, a name that does
// not exist yet in a writable directory, a kind or flag of a newer ABI) takes its bit out of what is
// enforced. Name rules are none of its affair: floor.hpp.
//
// A bind shows a host path at another place too (guest_path), so denies are applied wherever a mount shows
// them. Throws plugin::failure. A value once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ccbox/plugin.hpp"
#include "host_tree.hpp"
#include "mount_table.hpp"

namespace ccbox::bubblewrap {

class view {
 public:
  // More host paths than this are refused: each costs a descriptor, and bubblewrap reads the whole mount
  // table once a mount, so its start grows with the square of their number.
  static constexpr std::size_t max_host_paths = 1000;

  view(const plugin::plan_request& request, const host_tree& tree);

  const std::vector<entry>& steps() const { return steps_; }  // apply in this order
  bool is_writable(const entry& step) const;
  const std::vector<std::string>& made_read_only() const {
    return made_read_only_;
  }  // when all of them are applied
  const std::map<std::size_t, std::string>& layers() const { return layers_; }  // by rule index
  std::uint64_t unenforced() const { return unenforced_; }

 private:
  struct deny;
  void add_mount(const plugin::rule& r);
  void add_private_directories(const plugin::plan_request& request);
  void mask_machine_files();
  void add_session_directory(std::string_view path);
  void add_read_deny(const deny& d);
  void add_write_deny(const deny& d);
  void pin_ancestors(const entry& e);
  void check_mount_point(const entry& e);
  entry* nearest(std::string_view guest, bool strictly_above);
  std::vector<deny> denies(const plugin::plan_request& request, ccbox_rule_kind kind);
  void say(std::size_t rule, const std::string& text);
  void finish();

  const host_tree& tree_;
  const bool root_caller_;
  mount_table mounts_;    // what the spec, the system and the session put there
  mount_table overlays_;  // masks, read-only binds over protected paths, pins
  std::multimap<std::string, std::string> guests_by_host_;
  std::vector<entry> steps_;
  std::vector<std::string> made_read_only_;
  std::map<std::size_t, std::string> layers_;
  std::uint64_t unenforced_ = 0;
};

}  // namespace ccbox::bubblewrap
