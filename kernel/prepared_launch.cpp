#include "prepared_launch.hpp"

#include <optional>

#include "limits.hpp"

namespace ccbox {

namespace {

// The plugin that is to run the session's pair. Without one nothing is reachable, which a spec that names
// destinations did not ask for.
result<const egress_plugin*> choose_proxies(const sandbox_context& context, const policy& rules) {
  const egress_plugin* plugin = context.plugins->find_egress();
  if (!rules.egress.proxied) return static_cast<const egress_plugin*>(nullptr);
  if (plugin && rules.egress.configured) {
    if (auto fine = check_allowlist(rules.egress, *plugin); !fine) return fine.error();
    return plugin;
  }
  if (!rules.spec.egress_allowlist.empty()) {
    return error{
        error_code::unavailable,
        "egressAllowlist names destinations, and " +
            std::string(plugin ? "there is no file of egress rules" : "no egress plugin is loaded"),
        "`ccbox plugins` says what was loaded; without proxies nothing is reachable, or everything is, "
        "with --without net_proxy_only"};
  }
  return static_cast<const egress_plugin*>(nullptr);
}

}  // namespace

result<prepared_launch> prepare(const sandbox_context& context, const sandbox_spec& spec) {
  if (auto valid = validate(spec); !valid) return valid.error();
  std::optional<host_facts> present;
  if (context.lives_long) {
    present = context.host;
    present->kernel_mounts = find_kernel_mounts();
  }
  const host_facts& host = present ? *present : context.host;
  auto rules = compile_policy(spec, host, *context.config, context.egress);
  if (!rules) return rules.error();
  const auto chosen = context.plugins->select_backend(rules->backend_request);
  if (!chosen) return chosen.error();
  auto how = (*chosen)->make_plan(*rules, context.init_path);
  if (!how) return how.error();
  if (auto enforceable = check_limits(spec.limits, !how->unconfined); !enforceable)
    return enforceable.error();
  const auto proxies = choose_proxies(context, *rules);
  if (!proxies) return proxies.error();
  prepared_launch made;
  made.proxies = *proxies;
  made.env = (*chosen)->kind() == "none" ? environment(context.host.environment)
                                         : command_environment(*rules, context.host, *context.config);
  made.rules = std::move(*rules);
  made.chosen = *chosen;
  made.how = std::move(*how);
  return made;
}

}  // namespace ccbox
