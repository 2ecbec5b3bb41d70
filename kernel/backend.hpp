// A loaded plugin that answers "ccbox.backend/1", as C++ values. Never throws what the plugin did wrong: a
// bad answer (an empty argv, a relative argv[0], text that is no UTF-8, a plan flag that this kernel does not
// know) is an error naming the plugin; rule bits that it does not know count for nothing.
//
// Borrows the plugin and its table, which must outlive it. probe() by one thread at a time; the rest by any.
#pragma once

#include <string>

#include "ccbox/plugin.h"
#include "plan.hpp"
#include "policy.hpp"
#include "result.hpp"

namespace ccbox {

struct probe_result {
  bool available = false;
  bool requires_install = false;
  rule_bits enforced = 0;
  std::string note;
  std::string hint;
  std::string cause;
};

// As plugins get it; borrows the rule's texts.
ccbox_rule to_abi(const rule& r);

class backend {
 public:
  backend(std::string name, std::string version, ccbox_plugin* plugin, const ccbox_backend* table);

  // The plugin's table is complete and names a kind that exists. probe() and make_plan() refuse without it.
  result<void> validate() const;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const std::string& kind() const { return kind_; }  // native, microvm, none

  // `init_path`: for a full probe, which starts ccbox-init.
  result<probe_result> probe(ccbox_probe_depth depth, const std::string& init_path = {}) const;

  // Refuses (unenforceable) when policy.required has a bit that the plan does not enforce; the message names
  // the rule, an example of what it would have refused, and the remedy (`--without NAME`).
  result<plan> make_plan(const policy& p, const std::string& init_path) const;

 private:
  std::string name_, version_, kind_;
  ccbox_plugin* plugin_;
  const ccbox_backend* table_;
};

}  // namespace ccbox
