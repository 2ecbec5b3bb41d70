// A loaded plugin that answers "ccbox.monitor/1", as C++ values, and what it makes of the denials of one
// session.
//
// Never throws what the plugin did wrong, and passes on nothing unescaped: each violation that it hands back
// goes through make_safe(). One without an action is dropped.
//
// Borrows the plugin and its table, which must outlive it and every watch. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ccbox/plugin.h"
#include "policy.hpp"
#include "result.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

class monitor_watch;

class monitor_plugin {
 public:
  monitor_plugin(std::string name, ccbox_plugin* plugin, const ccbox_monitor* table);

  // The plugin's table is complete.
  result<void> validate() const;
  const std::string& name() const { return name_; }

  // `enforced`: of the plan. `denials_reported`: the backend tells of refused actions itself.
  result<std::unique_ptr<monitor_watch>> open(const policy& rules, rule_bits enforced,
                                              bool denials_reported) const;

 private:
  std::string name_;
  ccbox_plugin* plugin_;
  const ccbox_monitor* table_;
};

// What it answers are violation events without session id and sequence, in order.
class monitor_watch {
 public:
  ~monitor_watch();  // close()
  monitor_watch(const monitor_watch&) = delete;
  monitor_watch& operator=(const monitor_watch&) = delete;

  std::vector<sandbox_event> denial(const sandbox_violation& denied);
  // `bytes` empty: the command has ended.
  std::vector<sandbox_event> output(std::uint64_t exec_id, std::string_view bytes);
  struct told {
    std::vector<sandbox_event> events;
    std::uint32_t again_ms = 0;  // when to ask again; 0: not before the next denial or output
  };
  told flush(bool last);
  // Nothing comes any more when it returns. Idempotent.
  void close() noexcept;

 private:
  friend class monitor_plugin;
  monitor_watch(const ccbox_monitor* table, ccbox_watch* watch) : table_(table), watch_(watch) {}

  std::mutex mutex_;
  const ccbox_monitor* table_;
  ccbox_watch* watch_;  // null: closed
};

}  // namespace ccbox
