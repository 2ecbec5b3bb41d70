// The plugins of this process: loaded, created and probed once at boot, with what was skipped and why.
//
// Threads: build() on the main thread; everything else may be called from any thread once built, and
// diagnose() probes for one caller at a time. Owns its plugins and destroys them with itself; backends are
// borrowed from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.hpp"
#include "egress.hpp"
#include "manifest.hpp"
#include "monitor.hpp"
#include "plugin_loader.hpp"
#include "result.hpp"

namespace ccbox {

struct plugin_status {
  std::string path;
  std::string name;  // empty if it was not loaded
  std::string version;
  std::string where;  // its line of the manifest
  enum class outcome { loaded, disabled, not_asked_for, skipped } state = outcome::skipped;
  std::optional<error> failure;       // why it was skipped
  std::optional<probe_result> probe;  // backends
  std::vector<std::string> extensions;
  int priority = 0;
};

// A plugin's event for a session's stream; `json` is one object as the plugin wrote it, not parsed. Called on
// any thread, one call at a time.
using plugin_event_handler =
    std::function<ccbox_status(std::string_view session_id, std::string_view type, std::string_view json)>;

// `needed`: not the entries `on_request`, unless they are required too. For who asks for no backend: what is
// left out then is never selected.
enum class plugin_choice { all, needed };

class registry {
 public:
  // Bad plugins are reported in statuses() and skipped, unless the manifest says `required: true`: then an
  // error.
  static result<std::unique_ptr<registry>> build(const manifest& m, ccbox_probe_depth depth,
                                                 plugin_choice which = plugin_choice::all);
  ~registry();

  const std::vector<plugin_status>& statuses() const;
  const backend* find_backend(std::string_view name) const;

  // The loaded egress plugin with the highest priority; null: there is none, and sessions reach nothing.
  const egress_plugin* find_egress() const;
  // The loaded monitor with the highest priority; null: there is none, and each denial is an event as it
  // comes.
  const monitor_plugin* find_monitor() const;

  // Where the plugins' events go from now on; before, and with an empty handler, plugins are told
  // CCBOX_UNAVAILABLE. Answers a number for end_plugin_events(), which does nothing if somebody else has
  // taken over. When that returns, no call is in progress.
  unsigned on_plugin_event(plugin_event_handler handler) const;
  void end_plugin_events(unsigned number) const;

  // For a policy's backend request. "": the available backend with the highest priority, never `none`; native
  // and microvm: the best of that kind; a name: that very plugin. Unavailable: an error with the probe's
  // hint. It never steps down to another kind.
  result<const backend*> select_backend(const std::string& request) const;

  // Runs the full probe of one backend again, to explain a launch that failed.
  result<probe_result> diagnose(std::string_view backend_name) const;

 private:
  registry();
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ccbox
