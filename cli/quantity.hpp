// Sizes, times and numbers as people write them on a command line. Errors are invalid_argument and name the
// option.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "result.hpp"

namespace ccbox {

// "--memory 'x': not a size"
error bad_value(std::string_view option, std::string_view text, std::string_view why, std::string hint = {});

// "512M", "2G", "1000": bytes, K M G T being powers of 1024.
result<std::uint64_t> parse_size(std::string_view option, std::string_view text);
// "90", "30s", "1.5m", "2h", "500ms": milliseconds; without a unit, seconds.
result<std::uint64_t> parse_duration_ms(std::string_view option, std::string_view text);
// "1.5": positive.
result<double> parse_number(std::string_view option, std::string_view text);
// "200": positive, digits only.
result<std::uint64_t> parse_count(std::string_view option, std::string_view text);

}  // namespace ccbox
