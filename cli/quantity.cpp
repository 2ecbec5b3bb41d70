#include "quantity.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace ccbox {

namespace {

// A positive number times a unit's factor, or nothing.
std::optional<double> scaled(std::string_view text,
                             const std::vector<std::pair<std::string_view, double>>& units) {
  double number = 0;
  const auto [end, ec] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (ec != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : units) {
    if (unit == name) return number * factor;
  }
  return std::nullopt;
}

constexpr const char* zero = "a limit of nothing leaves nothing to run";
constexpr const char* no_limit = "leave the option out for no limit";

// Without a look at the unit.
bool is_zero(std::string_view text) {
  const auto digits = text.substr(0, text.find_first_not_of("0."));
  return digits.find('0') != digits.npos && text.find_first_of("123456789") == text.npos;
}

}  // namespace

error bad_value(std::string_view option, std::string_view text, std::string_view why, std::string hint) {
  return {error_code::invalid_argument, std::string(option) + " " + quoted(text) + ": " + std::string(why),
          std::move(hint)};
}

result<std::uint64_t> parse_size(std::string_view option, std::string_view text) {
  constexpr double k = 1024, m = k * k, g = k * m, t = k * g;
  const auto bytes = scaled(text, {{"", 1},
                                   {"B", 1},
                                   {"K", k},
                                   {"KB", k},
                                   {"KiB", k},
                                   {"M", m},
                                   {"MB", m},
                                   {"MiB", m},
                                   {"G", g},
                                   {"GB", g},
                                   {"GiB", g},
                                   {"T", t},
                                   {"TB", t},
                                   {"TiB", t}});
  if (is_zero(text)) return bad_value(option, text, zero, no_limit);
  if (bytes && *bytes > 9e15) return bad_value(option, text, "too large", no_limit);
  if (!bytes || *bytes < 1) return bad_value(option, text, "not a size", "such as 512M or 2G");
  return static_cast<std::uint64_t>(*bytes);
}

result<std::uint64_t> parse_duration_ms(std::string_view option, std::string_view text) {
  const auto ms = scaled(text, {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}});
  if (is_zero(text)) return bad_value(option, text, zero, no_limit);
  if (ms && *ms > 1e13) return bad_value(option, text, "too long", no_limit);
  if (!ms || *ms < 1) return bad_value(option, text, "not a time", "such as 90, 30s, 5m or 2h");
  return static_cast<std::uint64_t>(*ms);
}

result<double> parse_number(std::string_view option, std::string_view text) {
  const auto number = scaled(text, {{"", 1}});
  if (is_zero(text)) return bad_value(option, text, zero, no_limit);
  if (!number) return bad_value(option, text, "not a positive number", "such as 1.5");
  return *number;
}

result<std::uint64_t> parse_count(std::string_view option, std::string_view text) {
  std::uint64_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, ec] = std::from_chars(text.data(), last, number);
  if (is_zero(text)) return bad_value(option, text, zero, no_limit);
  if (ec != std::errc() || end != last) {
    return bad_value(option, text, "not a positive whole number", "such as 200");
  }
  return number;
}

}  // namespace ccbox
