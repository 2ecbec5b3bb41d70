// What a plugin reports of a connection that it refused or could not make (events "denial" and "unreachable",
// docs/abi.md), as the event that subscribers get.
#pragma once

#include <span>
#include <string_view>

#include "egress_rule.hpp"
#include "result.hpp"
#include "sandbox_event.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

constexpr std::string_view network_action = "network-outbound";

// Of a destination: {"protocol", "host", "port", "reason", "rule", "origin", "count"}: host and port are
// required, others may come. `host` is the plugin's escaped text. The target is host:port (`*` where there is
// no host: many refusals counted together); the network capability is suggested where the agent lacks it. Of
// a file: {"operation", "path", "hostPath", "rule", "reason", "pid", "program", "errno", "count"}: operation
// (create, mkdir, mknod, symlink, link, write, rename, remove) and path are required. The target is the path.
// raw is the JSON in both cases. `withheld` is what further capabilities would add to the session's rules.
result<sandbox_violation> violation_of_denial(std::string_view json, const agent_capabilities& capabilities,
                                              std::span<const withheld_domain> withheld = {});

// The same keys, of a destination that is allowed; the reason is required too.
result<sandbox_unreachable> unreachable_of(std::string_view json);

// What a plugin reports of a session: event "denial", "unreachable", or "violation" with a SandboxViolation
// as JSON.
result<sandbox_event> event_of_report(std::string_view type, std::string_view json,
                                      const agent_capabilities& capabilities,
                                      std::span<const withheld_domain> withheld = {});

// Nothing in its texts can forge a line, move a cursor or reorder what is shown; each is cut to a length that
// events bear. Every violation goes through it before anybody sees it; twice is as once.
void make_safe(sandbox_violation& violation);

}  // namespace ccbox
