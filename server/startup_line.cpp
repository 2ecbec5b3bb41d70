#include "startup_line.hpp"

namespace ccbox::server {

sandbox_status status_of(const registry& plugins, bool enabled) {
  sandbox_status out;
  out.enabled = enabled;
  const auto native = plugins.select_backend("native");
  if (!native) {
    out.hint = native.error().hint.empty() ? native.error().what : native.error().hint;
    return out;
  }
  out.native = *native;
  for (const plugin_status& each : plugins.statuses())
    if (each.name == out.native->name() && each.probe) out.note = each.probe->note;
  return out;
}

std::string startup_line(const sandbox_status& status) {
  if (!status.enabled) return "agent sandbox DISABLED by --sandbox off";
  if (status.native) return "agent sandbox ON: " + printable(status.note);
  return "no OS-native agent sandbox on this host: " + printable(status.hint);
}

}  // namespace ccbox::server
