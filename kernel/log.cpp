#include "log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "result.hpp"

namespace ccbox {

namespace {

spdlog::logger& logger() {
  // Never destroyed: plugins and detached threads may log while the process ends.
  static auto* const instance = [] {
    auto* made = new spdlog::logger("ccbox", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(log_level level) {
  switch (level) {
    case log_level::debug:
      return spdlog::level::debug;
    case log_level::info:
      return spdlog::level::info;
    case log_level::warn:
      return spdlog::level::warn;
    case log_level::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view name_of(log_level level) {
  switch (level) {
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warn:
      return "warn";
    case log_level::error:
      return "error";
  }
  return "error";
}

bool is_plain_word(std::string_view text) {
  constexpr std::string_view others = "_-+./:@%";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

}  // namespace

void set_log_level(log_level level) {
  logger().set_level(to_spdlog(level));
}

bool set_log_level(std::string_view name) {
  if (name == "off") {
    logger().set_level(spdlog::level::off);
    return true;
  }
  for (const auto level : {log_level::debug, log_level::info, log_level::warn, log_level::error}) {
    if (name_of(level) != name) continue;
    set_log_level(level);
    return true;
  }
  return false;
}

void log_event(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
  if (!logger().should_log(to_spdlog(level))) return;
  std::string line = "level=" + std::string(name_of(level)) + " event=" + std::string(event);
  for (const auto& field : fields)
    ((line += " ") += field.key) += "=" + (is_plain_word(field.value) ? field.value : quoted(field.value));
  logger().log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

void log_line(log_level level, std::string_view line) {
  const auto text = printable(line);
  logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace ccbox
