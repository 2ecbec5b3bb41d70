// What a plan asks the host's file system, and nothing more. Answers are hints for good refusals: what is
// bound is opened again, without following links, when the plan is started.
#pragma once

#include <optional>
#include <string>

namespace ccbox::bubblewrap {

enum class node_type {
  missing,
  directory,
  other,
  linked
};  // linked: a symbolic link on the way or at the end

// The seam for tests. Thread-safe.
class host_tree {
 public:
  virtual ~host_tree() = default;
  virtual node_type type(const std::string& path) const = 0;
  virtual std::optional<std::string> link_text(const std::string& path) const = 0;
};

class real_host_tree : public host_tree {
 public:
  node_type type(const std::string& path) const override;
  std::optional<std::string> link_text(const std::string& path) const override;
};

}  // namespace ccbox::bubblewrap
