// What a launch is decided to be before anything is started. Both dispatch seams (sandbox_port,
// sandbox_manager) begin with it, so they cannot disagree.
#pragma once

#include <string>

#include "backend.hpp"
#include "egress.hpp"
#include "egress_resolver.hpp"
#include "environment.hpp"
#include "host.hpp"
#include "plan.hpp"
#include "policy.hpp"
#include "policy_config.hpp"
#include "registry.hpp"
#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

// All that both seams share; the caller keeps it alive.
struct sandbox_context {
  const registry* plugins = nullptr;
  const policy_config* config = nullptr;
  host_facts host;
  std::string init_path;
  egress_sources egress = {};
  // Somebody may mount something between two launches: `host` is asked again about its mounts at each.
  bool lives_long = false;
  bool monitored = true;  // false: nobody wants to know of violations
};

// A policy with the backend and the plan that serve it.
struct prepared_launch {
  policy rules;
  const backend* chosen = nullptr;
  plan how;
  const egress_plugin* proxies = nullptr;  // runs the session's pair; null: it has none
  environment env;  // of the commands of a launch: the session's own, the host's for backend `none`
};
// Starts nothing and changes nothing. Refuses limits that cannot be enforced here, too.
result<prepared_launch> prepare(const sandbox_context& context, const sandbox_spec& spec);

}  // namespace ccbox
