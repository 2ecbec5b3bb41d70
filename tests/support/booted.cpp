#include "support/booted.hpp"

#include <doctest/doctest.h>

#include "log.hpp"
#include "paths.hpp"
#include "support/result_printing.hpp"

namespace ccbox::test {

booted::booted(const std::string& manifest_text) {
  set_log_level("off");
  const auto here = find_installation();
  REQUIRE(here);
  const auto m = manifest_text.empty() ? load_manifest(here->manifest, here->plugin_directory)
                                       : parse_manifest(manifest_text, "test.yaml", here->plugin_directory);
  REQUIRE(m);
  auto plugins = registry::build(*m, CCBOX_PROBE_QUICK);
  REQUIRE(plugins);
  plugins_ = std::move(*plugins);
  auto config = load_policy_config(here->policy);
  REQUIRE(config);
  config_ = std::move(*config);
  auto egress = load_egress_config(here->egress);
  REQUIRE(egress);
  egress_ = std::move(*egress);
  context_ = {plugins_.get(), &config_, gather_host_facts(), here->init, {&egress_, {}, here->net_connect}};
}

booted& shared_boot() {
  static booted* const instance = new booted;
  return *instance;
}

sandbox_spec spec_for(const std::string& session_id, const std::string& backend,
                      const std::string& directory) {
  sandbox_spec spec;
  spec.session_id = session_id;
  spec.workspace_id = "w";
  spec.bind_mounts = {{directory, directory, false}};
  spec.guest_workdir = directory;
  spec.backend = backend;
  return spec;
}

recorder::recorder(event_bus& bus, boost::asio::any_io_executor executor, const std::string& session_id) {
  subscription_ =
      bus.subscribe(executor, session_id, [s = state_](sandbox_event e) { return keep(s, std::move(e)); });
}

boost::asio::awaitable<void> recorder::keep(std::shared_ptr<state> s, sandbox_event event) {
  std::lock_guard lock(s->mutex);
  s->events.push_back(std::move(event));
  co_return;
}

std::vector<sandbox_event> recorder::events() const {
  std::lock_guard lock(state_->mutex);
  return state_->events;
}

std::string recorder::text() const {
  std::vector<sandbox_event> joined;
  for (const sandbox_event& e : events()) {
    const bool output =
        e.type == sandbox_event_type::stdout_data || e.type == sandbox_event_type::stderr_data;
    if (output && !joined.empty() && joined.back().type == e.type && joined.back().exec_id == e.exec_id) {
      joined.back().data += e.data;
    } else {
      joined.push_back(e);
    }
  }
  std::string out;
  for (const sandbox_event& e : joined) {
    out += (out.empty() ? "" : " ") + std::string(to_string(e.type));
    if (e.exec_id != 0) out += "(" + std::to_string(e.exec_id) + ")";
    if (!e.data.empty()) out += "=" + quoted(e.data);
    if (e.type == sandbox_event_type::exit) out += "=" + std::to_string(e.exit_code);
    if (e.reason) out += "=" + std::string(to_string(*e.reason));
  }
  return out;
}

std::string recorder::output(std::uint64_t exec_id, sandbox_event_type type) const {
  std::string out;
  for (const sandbox_event& e : events()) {
    if (e.exec_id == exec_id && e.type == type) out += e.data;
  }
  return out;
}

std::size_t recorder::count(sandbox_event_type type) const {
  std::size_t n = 0;
  for (const sandbox_event& e : events())
    n += e.type == type ? 1 : 0;
  return n;
}

}  // namespace ccbox::test
