// What a session says of its own end, and of a start that failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "result.hpp"
#include "sandbox_event.hpp"

namespace ccbox {

// An enclosure that has too little memory to start says so in many ways: no exec, a killed launcher, no
// answer.
error hinting_at_memory(error e, const std::optional<std::uint64_t>& memory_bytes);

// Of a session that nobody destroyed.
error end_error(std::optional<kill_reason> why, const std::string& enclosure_reason);

}  // namespace ccbox
