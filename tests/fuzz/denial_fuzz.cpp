#include "denial.hpp"

#include "fuzz/target.hpp"

namespace {

// What a plugin emits; part of it comes from a sandboxed process.
void run(std::string_view json) {
  using ccbox::error_code;
  const auto violation = ccbox::violation_of_denial(json, {});
  if (!violation)
    return fuzz::require_good_error(violation.error(), {error_code::invalid_argument, error_code::too_large});
  fuzz::require(violation->action == ccbox::network_action, "a denial is of the network");
  fuzz::require(!violation->target.empty(), "a denial has a target");
  fuzz::require(violation->raw == json, "what was said is kept");
}

const fuzz::registered target("denial", run);

}  // namespace
