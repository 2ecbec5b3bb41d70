#include "path_operations.hpp"

#include <algorithm>
#include <utility>

#include "glob.hpp"
#include "path_spelling.hpp"

namespace ccbox {

namespace {

using may = path_operation::verdict;

class operations {
 public:
  operations(const policy& p, const path_answer& answer) : policy_(p), at_(answer) {
    for (const std::size_t index : at_.deciding_rules) {
      const auto kind = p.rules[index].kind;
      if (kind == rule_kind::mount) mount_ = index;
      if (kind == rule_kind::read_deny || kind == rule_kind::write_deny) held_ = index;
    }
  }

  std::vector<path_operation> all() {
    add("read", read());
    add("write", write());
    add("create", create());
    add("rename to it", rename_to());
    add("rename it", leave("renamed"));
    add("link to it", link_to());
    add("link of it", link_of());
    add("remove", remove());
    return std::move(out_);
  }

 private:
  struct result_of {
    may verdict;
    std::string why;
    std::optional<std::size_t> rule = {};
  };

  void add(std::string_view name, result_of r) {
    out_.push_back({name, r.verdict, std::move(r.why), r.rule});
  }

  static result_of yes(std::string why = {}, std::optional<std::size_t> rule = {}) {
    return {may::succeed, std::move(why), rule};
  }
  static result_of no(std::string error, std::optional<std::size_t> rule = {}) {
    return {may::fail, std::move(error), rule};
  }
  static result_of missing() { return no("ENOENT: nothing is there"); }

  bool is_held_here() const { return held_ && policy_.rules[*held_].guest_path == at_.resolved; }
  bool is_read_only() const { return mount_ && policy_.rules[*mount_].read_only; }
  bool is_mount_point() const { return mount_ && policy_.rules[*mount_].guest_path == at_.resolved; }
  name_condition condition() const { return at_.name_condition; }
  bool may_come() const { return condition() != name_condition::none; }

  // Nothing about this place is a matter of rules.
  std::optional<result_of> beyond_rules() const {
    if (at_.unconfined) return yes("no rules: the user's own permissions");
    if (!at_.visible) return no("ENOENT: no mount shows it");
    if (at_.is_private && !at_.writable) return no("the enclosure's own, fresh at every start");
    if (at_.is_private) return yes("memory of the session");
    return std::nullopt;
  }

  result_of read() const {
    if (const auto answer = beyond_rules(); answer && !(at_.is_private && !at_.writable)) return *answer;
    if (at_.is_private) return yes();
    if (!at_.exists) return missing();
    return at_.readable ? yes() : no("EACCES, or empty", held_);
  }

  result_of write() const {
    if (const auto answer = beyond_rules()) return *answer;
    if (!at_.exists) return missing();
    if (at_.is_directory) return no("EISDIR");
    if (is_read_only()) return no("EROFS", mount_);
    if (at_.name_rule) return no("EACCES", at_.name_rule);
    return held_ ? no(at_.readable ? "EROFS" : "EACCES", held_) : yes();
  }

  // By open, mkdir, mknod, symlink.
  result_of create() const {
    if (const auto answer = beyond_rules()) return *answer;
    if (at_.exists) return no("EEXIST: something is there");
    if (is_read_only()) return no("EROFS", mount_);
    if (at_.name_rule && condition() == name_condition::git_config)
      return {may::depend, "an empty file alone, by open, and whoever opens it cannot write to it",
              at_.name_rule};
    if (at_.name_rule && condition() == name_condition::is_new)
      return {may::depend, "a file, by open, because none is there; from then on it is not written to",
              at_.name_rule};
    if (at_.name_rule) return no("EACCES", at_.name_rule);
    return held_ ? no("EROFS", held_) : with_exempt();
  }

  result_of with_exempt() const { return at_.exempt_rule ? yes("exempt", at_.exempt_rule) : yes(); }

  result_of rename_to() const {
    if (const auto answer = beyond_rules()) return *answer;
    if (is_read_only()) return no("EROFS, or EXDEV from elsewhere", mount_);
    if (at_.name_rule && condition() == name_condition::git_config && !is_held_here())
      return {may::depend,
              "from beside it, if it is configuration of git that runs nothing and leads nowhere",
              at_.name_rule};
    if (at_.name_rule) return no("EACCES", at_.name_rule);
    if (is_held_here() || is_mount_point()) return no("EBUSY", is_held_here() ? held_ : mount_);
    return held_ ? no("EROFS, or EXDEV from elsewhere", held_) : with_exempt();
  }

  // What is there gets another name, or none.
  result_of leave(std::string_view how) const {
    if (const auto answer = beyond_rules()) return *answer;
    if (!at_.exists && how == "removed" && !at_.name_rule && (is_read_only() || held_))
      return no("EROFS, and nothing is there", held_ ? held_ : mount_);
    if (!at_.exists) return missing();
    if (is_read_only() && !is_mount_point()) return no("EROFS", mount_);
    if (at_.name_rule && (how == "renamed" || !may_come() || is_held_here()))
      return no("EACCES", at_.name_rule);
    if (is_held_here() || is_mount_point()) return no("EBUSY", is_held_here() ? held_ : mount_);
    if (held_) return no("EROFS", held_);
    if (const auto below = held_below())
      return no("EBUSY: " + quoted(policy_.rules[*below].guest_path) + " is in it", below);
    if (at_.is_directory && how == "renamed" && (policy_.required & CCBOX_RULE_FS_NAME_DENY))
      return {may::depend, "if nothing in it has a protected name there"};
    return yes();
  }

  result_of remove() const { return leave("removed"); }

  // A new hard link of that name.
  result_of link_to() const {
    if (const auto answer = beyond_rules()) return *answer;
    if (at_.exists) return no("EEXIST: something is there");
    if (is_read_only()) return no("EROFS, or EXDEV from elsewhere", mount_);
    if (at_.name_rule) return no("EACCES", at_.name_rule);
    return held_ ? no("EROFS, or EXDEV from elsewhere", held_) : with_exempt();
  }

  // A further name for what is there, under which it could be written to.
  result_of link_of() const {
    if (const auto answer = beyond_rules()) return *answer;
    if (!at_.exists) return missing();
    if (at_.is_directory) return no("EPERM: a directory");
    if (is_read_only()) return no("EXDEV", mount_);
    if (at_.name_rule) return no("EACCES", at_.name_rule);
    return held_ ? no("EXDEV", held_) : yes();
  }

  // Something below that is a mount of its own, which keeps the directories that lead to it.
  std::optional<std::size_t> held_below() const {
    for (std::size_t i = 0; i < policy_.rules.size(); ++i) {
      const auto& r = policy_.rules[i];
      const bool is_mounted =
          r.kind == rule_kind::mount || r.kind == rule_kind::read_deny || r.kind == rule_kind::write_deny;
      if (is_mounted && r.type != path_type::missing && !r.glob && !(r.bit & policy_.waived) &&
          r.guest_path != at_.resolved && !r.guest_path.empty() && is_within(r.guest_path, at_.resolved))
        return i;
    }
    return std::nullopt;
  }

  const policy& policy_;
  const path_answer& at_;
  std::optional<std::size_t> mount_, held_;
  std::vector<path_operation> out_;
};

}  // namespace

std::vector<path_operation> operations_on(const policy& p, const path_answer& answer) {
  if (answer.resolved.empty()) return {};
  return operations(p, answer).all();
}

}  // namespace ccbox
