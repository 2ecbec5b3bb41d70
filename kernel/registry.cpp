#include "registry.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "host.hpp"
#include "log.hpp"
#include "paths.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace {

constexpr std::string_view known_extensions[] = {"ccbox.backend/1", "ccbox.egress/1", "ccbox.monitor/1",
                                                 "ccbox.guest/1"};

std::string_view view(ccbox_str text) {
  return text.ptr ? std::string_view(text.ptr, text.len) : std::string_view();
}

bool is_kind(std::string_view name) {
  return name == "native" || name == "microvm" || name == "none";
}

log_level to_log_level(ccbox_level level) {
  switch (level) {
    case CCBOX_DEBUG:
      return log_level::debug;
    case CCBOX_INFO:
      return log_level::info;
    case CCBOX_WARN:
      return log_level::warn;
    default:
      return log_level::error;
  }
}

// One for all plugins of a registry; each sees it through a host table of its own.
struct event_outlet {
  std::mutex mutex;
  plugin_event_handler handler;
  unsigned number = 0;  // of the handler
};

// What one plugin is given. Outlives it, and never moves.
struct plugin_host {
  ccbox_host table{};
  std::string name;  // in log lines: the file's stem until the plugin has said its own
  event_outlet* outlet = nullptr;

  plugin_host(std::string file_stem, event_outlet* events) : name(std::move(file_stem)), outlet(events) {
    table.size = sizeof table;
    table.abi_minor = CCBOX_ABI_MINOR;
    table.ctx = this;
    table.log = [](void* ctx, ccbox_level level, ccbox_str text) {
      const auto& self = *static_cast<const plugin_host*>(ctx);
      try {
        log_event(to_log_level(level), "plugin_log",
                  {{"plugin", self.name}, {"text", view(text).substr(0, max_log_bytes)}});
      } catch (const std::exception&) {
        // Nothing may be thrown into the plugin, and a line that finds no memory is lost.
      }
    };
    table.emit = [](void* ctx, ccbox_str session, ccbox_str type, ccbox_str json) -> ccbox_status {
      const auto& self = *static_cast<const plugin_host*>(ctx);
      if (!is_utf8(view(session)) || !is_utf8(view(type)) || !is_utf8(view(json))) return CCBOX_INVALID;
      if (json.len > max_event_bytes) return CCBOX_TOO_LARGE;
      try {
        const std::lock_guard lock(self.outlet->mutex);
        if (!self.outlet->handler) return CCBOX_UNAVAILABLE;
        return self.outlet->handler(view(session), view(type), view(json));
      } catch (const std::exception&) {
        return CCBOX_FAILED;
      }
    };
    table.get_extension = [](void*, ccbox_str) -> const void* { return nullptr; };
  }

  static constexpr std::size_t max_log_bytes = 4096;
  static constexpr std::size_t max_event_bytes = 1 << 20;
};

struct member {
  std::unique_ptr<plugin_host> host;
  std::unique_ptr<loaded_plugin> plugin;  // destroyed before its host
  std::unique_ptr<backend> as_backend;
  std::unique_ptr<egress_plugin> as_egress;
  std::unique_ptr<monitor_plugin> as_monitor;
  std::size_t status = 0;
};

}  // namespace

struct registry::impl {
  event_outlet outlet;  // destroyed last: plugins may emit until their destroy returns
  std::vector<plugin_status> statuses;
  std::vector<member> members;  // by falling priority
  std::string manifest_file;
  mutable std::mutex diagnosing;  // a plugin is probed by one caller at a time

  const member* find(std::string_view name) const {
    for (const auto& m : members)
      if (m.as_backend && m.as_backend->name() == name) return &m;
    return nullptr;
  }
  const probe_result& probe_of(const member& m) const { return *statuses[m.status].probe; }

  result<void> load(const manifest_entry& entry, ccbox_probe_depth depth, plugin_status& status, member& out);
  result<void> adopt_backend(const ccbox_backend* table, ccbox_probe_depth depth, plugin_status& status,
                             member& out);
  result<const backend*> best_of_kind(const std::string& kind) const;
  result<const backend*> default_backend() const;
  error unknown_backend(const std::string& name) const;
};

namespace {

void log_outcome(const plugin_status& s) {
  using outcome = plugin_status::outcome;
  if (s.state == outcome::disabled)
    log_event(log_level::info, "plugin_disabled", {{"path", s.path}, {"where", s.where}});
  else if (s.state == outcome::not_asked_for)
    log_event(log_level::info, "plugin_not_asked_for", {{"path", s.path}, {"where", s.where}});
  else if (s.state == outcome::skipped)
    log_event(log_level::warn, "plugin_skipped",
              {{"path", s.path},
               {"code", to_string(s.failure->code)},
               {"what", s.failure->what},
               {"hint", s.failure->hint}});
  else if (!s.probe)
    log_event(log_level::info, "plugin_loaded", {{"plugin", s.name}, {"version", s.version}});
  else if (s.probe->available)
    log_event(log_level::info, "backend_available",
              {{"backend", s.name},
               {"version", s.version},
               {"enforces", join_rule_bits(s.probe->enforced)},
               {"note", s.probe->note}});
  else
    log_event(
        log_level::info, "backend_unavailable",
        {{"backend", s.name}, {"version", s.version}, {"cause", s.probe->cause}, {"hint", s.probe->hint}});
}

// A full probe starts ccbox-init; what the everyday one does not need is not looked for.
result<probe_result> probe_backend(const backend& b, ccbox_probe_depth depth) {
  if (depth != CCBOX_PROBE_FULL) return b.probe(depth);
  const auto parts = find_installation();
  return b.probe(depth, parts ? parts->init : "");
}

error unavailable(const backend& b, const probe_result& probe) {
  error e{error_code::unavailable, "backend " + ccbox::quoted(b.name()) + " is not available on this host",
          probe.hint};
  if (!probe.cause.empty()) e.what += " (" + probe.cause + ")";
  return e;
}

}  // namespace

result<void> registry::impl::adopt_backend(const ccbox_backend* table, ccbox_probe_depth depth,
                                           plugin_status& status, member& out) {
  auto made =
      std::make_unique<backend>(out.plugin->name(), out.plugin->version(), out.plugin->instance(), table);
  if (auto valid = made->validate(); !valid) return valid.error();
  // Somebody who asks for "native" must not get a plugin that merely calls itself so.
  if (is_kind(made->name()) && made->name() != made->kind())
    return error{error_code::conflict,
                 "plugin " + ccbox::quoted(out.plugin->path()) + " is called " + ccbox::quoted(made->name()) +
                     " but is of kind " + made->kind(),
                 "native, microvm and none name kinds of backends"};
  auto probe = probe_backend(*made, depth);
  if (!probe) return probe.error();
  status.probe = std::move(*probe);
  out.as_backend = std::move(made);
  return {};
}

result<void> registry::impl::load(const manifest_entry& entry, ccbox_probe_depth depth, plugin_status& status,
                                  member& out) {
  out.host = std::make_unique<plugin_host>(std::filesystem::path(entry.path).stem().string(), &outlet);
  auto plugin = load_plugin(entry, out.host->table);
  if (!plugin) return plugin.error();
  out.plugin = std::move(*plugin);
  status.name = out.plugin->name();
  status.version = out.plugin->version();
  out.host->name = status.name;
  for (const auto& other : members)
    if (other.plugin->name() == status.name)
      return error{error_code::conflict,
                   "plugin " + ccbox::quoted(entry.path) + " is called " + ccbox::quoted(status.name) +
                       " as is " + ccbox::quoted(other.plugin->path()),
                   "take one of the two out of the manifest or its directories"};
  const void* backend_table = nullptr;
  const void* egress_table = nullptr;
  const void* monitor_table = nullptr;
  for (const auto name : known_extensions) {
    const void* table = out.plugin->get_extension(name);
    if (!table) continue;
    status.extensions.emplace_back(name);
    if (name == CCBOX_BACKEND_EXTENSION) backend_table = table;
    if (name == CCBOX_EGRESS_EXTENSION) egress_table = table;
    if (name == CCBOX_MONITOR_EXTENSION) monitor_table = table;
  }
  if (status.extensions.empty())
    return error{error_code::unavailable,
                 "plugin " + ccbox::quoted(entry.path) + " offers no extension that this ccbox knows",
                 "it may be for a newer ccbox"};
  if (egress_table) {
    auto made = std::make_unique<egress_plugin>(out.plugin->name(), out.plugin->instance(),
                                                static_cast<const ccbox_egress*>(egress_table));
    if (auto valid = made->validate(); !valid) return valid.error();
    out.as_egress = std::move(made);
  }
  if (monitor_table) {
    auto made = std::make_unique<monitor_plugin>(out.plugin->name(), out.plugin->instance(),
                                                 static_cast<const ccbox_monitor*>(monitor_table));
    if (auto valid = made->validate(); !valid) return valid.error();
    out.as_monitor = std::move(made);
  }
  if (!backend_table) return {};
  return adopt_backend(static_cast<const ccbox_backend*>(backend_table), depth, status, out);
}

registry::registry() : impl_(std::make_unique<impl>()) {}
registry::~registry() = default;

result<std::unique_ptr<registry>> registry::build(const manifest& m, ccbox_probe_depth depth,
                                                  plugin_choice which) {
  std::unique_ptr<registry> made(new registry);
  auto& self = *made->impl_;
  self.manifest_file = m.file;
  std::vector<const manifest_entry*> order;
  for (const auto& entry : m.plugins)
    order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->priority > b->priority; });
  for (const auto* entry : order) {
    plugin_status status;
    status.path = entry->path;
    status.where = entry->where;
    status.priority = entry->priority;
    member loaded;
    if (!entry->enabled) {
      status.state = plugin_status::outcome::disabled;
    } else if (which == plugin_choice::needed && entry->on_request && !entry->required) {
      status.state = plugin_status::outcome::not_asked_for;
    } else if (auto good = self.load(*entry, depth, status, loaded); !good) {
      status.failure = good.error();
    } else {
      status.state = plugin_status::outcome::loaded;
      loaded.status = self.statuses.size();
      self.members.push_back(std::move(loaded));
    }
    log_outcome(status);
    if (status.failure && entry->required) {
      auto e = *status.failure;
      e.what = "a required plugin was not loaded: " + e.what;
      if (e.hint.empty()) e.hint = "it is required at " + entry->where;
      return e;
    }
    self.statuses.push_back(std::move(status));
  }
  const egress_plugin* used = made->find_egress();
  for (const auto& each : self.members)
    if (each.as_egress && each.as_egress.get() != used)
      log_event(
          log_level::warn, "egress_passed_over",
          {{"plugin", each.as_egress->name()}, {"what", used->name() + " comes first by its priority"}});
  const monitor_plugin* watching = made->find_monitor();
  for (const auto& each : self.members)
    if (each.as_monitor && each.as_monitor.get() != watching)
      log_event(
          log_level::warn, "monitor_passed_over",
          {{"plugin", each.as_monitor->name()}, {"what", watching->name() + " comes first by its priority"}});
  return made;
}

const std::vector<plugin_status>& registry::statuses() const {
  return impl_->statuses;
}

const backend* registry::find_backend(std::string_view name) const {
  const auto* found = impl_->find(name);
  return found ? found->as_backend.get() : nullptr;
}

const egress_plugin* registry::find_egress() const {
  for (const auto& m : impl_->members)
    if (m.as_egress) return m.as_egress.get();
  return nullptr;
}

const monitor_plugin* registry::find_monitor() const {
  for (const auto& m : impl_->members)
    if (m.as_monitor) return m.as_monitor.get();
  return nullptr;
}

unsigned registry::on_plugin_event(plugin_event_handler handler) const {
  const std::lock_guard lock(impl_->outlet.mutex);
  impl_->outlet.handler = std::move(handler);
  return ++impl_->outlet.number;
}

void registry::end_plugin_events(unsigned number) const {
  const std::lock_guard lock(impl_->outlet.mutex);
  if (impl_->outlet.number == number) impl_->outlet.handler = nullptr;
}

result<const backend*> registry::impl::best_of_kind(const std::string& kind) const {
  const member* refused = nullptr;
  for (const auto& m : members) {
    if (!m.as_backend || m.as_backend->kind() != kind) continue;
    if (probe_of(m).available) return m.as_backend.get();
    if (!refused) refused = &m;
  }
  if (refused) return unavailable(*refused->as_backend, probe_of(*refused));
  return unknown_backend(kind);
}

result<const backend*> registry::impl::default_backend() const {
  error none{error_code::unavailable, "no backend is available on this host", {}};
  for (const auto& m : members) {
    if (!m.as_backend || m.as_backend->kind() == "none") continue;
    const auto& probe = probe_of(m);
    if (probe.available) return m.as_backend.get();
    none.what += (none.hint.empty() ? ": " : ", ") + ccbox::quoted(m.as_backend->name());
    if (!probe.cause.empty()) none.what += " (" + probe.cause + ")";
    none.hint += (none.hint.empty() ? "" : "; ") + probe.hint;
    log_event(log_level::info, "backend_passed_over",
              {{"backend", m.as_backend->name()}, {"cause", probe.cause}});
  }
  // Without any backend to ask, what kept a plugin from being one is the answer.
  for (const auto& s : statuses) {
    if (!none.hint.empty() || s.state != plugin_status::outcome::skipped) continue;
    none.what += ": " + s.failure->what;
    none.hint = s.failure->hint;
  }
  if (inside_enclosure())
    none.hint = "this is inside an enclosure of ccbox already: run ccbox outside of it";
  else if (none.hint.empty())
    none.hint = "`ccbox plugins` shows what was loaded and what was skipped; the manifest is " +
                ccbox::quoted(manifest_file);
  return none;
}

error registry::impl::unknown_backend(const std::string& name) const {
  error e{error_code::not_found,
          is_kind(name) ? "no backend of kind " + name + " is loaded"
                        : "no backend is called " + ccbox::quoted(name),
          {}};
  // The plugin that was meant may be here but not loaded: its reason is the answer.
  for (const auto& s : statuses) {
    if (s.state == plugin_status::outcome::loaded) continue;
    if (s.name != name && std::filesystem::path(s.path).stem() != name) continue;
    if (s.state == plugin_status::outcome::disabled) {
      e.hint = "it is disabled at " + s.where;
    } else if (s.state == plugin_status::outcome::not_asked_for) {
      e.hint = "it was not asked for when the plugins were loaded: " + s.where + " says on_request";
    } else {
      e.what += ": " + s.failure->what;
      e.hint = s.failure->hint;
    }
    return e;
  }
  for (const auto& m : members)
    if (m.as_backend) e.hint += (e.hint.empty() ? "loaded backends: " : ", ") + m.as_backend->name();
  if (e.hint.empty()) e.hint = "no backend is loaded; the manifest is " + ccbox::quoted(manifest_file);
  return e;
}

result<const backend*> registry::select_backend(const std::string& request) const {
  if (request.empty()) return impl_->default_backend();
  if (is_kind(request)) return impl_->best_of_kind(request);
  const auto* found = impl_->find(request);
  if (!found) return impl_->unknown_backend(request);
  const auto& probe = impl_->probe_of(*found);
  if (!probe.available) return unavailable(*found->as_backend, probe);
  return found->as_backend.get();
}

result<probe_result> registry::diagnose(std::string_view backend_name) const {
  const auto* found = find_backend(backend_name);
  if (!found) return impl_->unknown_backend(std::string(backend_name));
  const std::lock_guard lock(impl_->diagnosing);
  return probe_backend(*found, CCBOX_PROBE_FULL);
}

}  // namespace ccbox
