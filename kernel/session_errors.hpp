// What a session says of its own end, and of a start that failed.
#pragma once

#include <optional>
#include <string>

#include "result.hpp"
#include "sandbox_event.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

// Why a start failed, where a limit of the spec or of the caller's was too low for it. An enclosure that has
// too little memory says so in many ways: no exec, a killed launcher, no answer.
error hinting_at_limits(error e, const resource_limits& limits);

// Of a session that nobody destroyed.
error end_error(std::optional<kill_reason> why, const std::string& enclosure_reason);

}  // namespace ccbox
