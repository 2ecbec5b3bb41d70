// One event a line on standard error: `level=info event=launch session=s1 what='no such file' took_ms=4`.
// spdlog does the writing and stays out of this header. Values go through quoted() unless they are plain
// words or numbers. Never secrets. The level is info until set_log_level says otherwise. May be called from
// any thread.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ccbox {

enum class log_level { debug, info, warn, error };

struct log_field {
  std::string_view key;
  std::string value;
  log_field(std::string_view k, std::string_view v) : key(k), value(v) {}
  log_field(std::string_view k, const char* v) : key(k), value(v) {}
  log_field(std::string_view k, const std::string& v) : key(k), value(v) {}
  template <std::integral T>
  log_field(std::string_view k, T v) : key(k), value(std::to_string(v)) {}
};

void set_log_level(log_level level);
bool set_log_level(std::string_view name);  // debug | info | warn | error | off; false if it is none of them
void log_event(log_level level, std::string_view event, std::initializer_list<log_field> fields = {});
// A finished line, as the specification words it ("agent sandbox ON ...").
void log_line(log_level level, std::string_view line);

}  // namespace ccbox
