#include "output.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "sandbox_handle.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace json = boost::json;

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd waiting{fd, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::string error_text(const error& e) {
  std::string text = "ccbox: error: " + printable(e.what) + "\n";
  if (!e.hint.empty()) text += "ccbox: hint: " + printable(e.hint) + "\n";
  return text;
}

int report(const error& e) {
  write_all(STDERR_FILENO, error_text(e));
  return exit_refused;
}

std::string warning_line(std::string_view text) {
  return "ccbox: warning: " + printable(text) + "\n";
}

void warn(std::string_view text) {
  write_all(STDERR_FILENO, warning_line(text));
}

namespace {

int print_failure = 0;  // errno of the first

}  // namespace

void print(std::string_view text) {
  if (print_failure == 0 && !write_all(STDOUT_FILENO, text)) print_failure = errno;
}

error lost_output(int error_number) {
  return system_error("write to standard output", "", error_number, "what was printed is incomplete");
}

error abandoned_output() {
  return {error_code::failed, "standard output took nothing any more while the run was ending",
          "what was printed is incomplete: whoever reads must go on reading until the end"};
}

int exit_code(int code) {
  if (print_failure == 0) return code;
  if (print_failure == EPIPE) return exit_signal_base + SIGPIPE;
  return report(lost_output(print_failure));
}

namespace {

// Paths may hold any bytes, JSON only UTF-8.
std::string serialized(std::string_view text) {
  return json::serialize(json::value(to_utf8(text)));
}

void append_indented(std::string& out, const json::value& value, const std::string& indent) {
  const std::string inner = indent + "  ";
  if (value.is_object() && !value.get_object().empty()) {
    const char* separator = "{\n";
    for (const auto& member : value.get_object()) {
      out += separator + inner + serialized(member.key()) + ": ";
      append_indented(out, member.value(), inner);
      separator = ",\n";
    }
    out += "\n" + indent + "}";
  } else if (value.is_array() && !value.get_array().empty()) {
    const char* separator = "[\n";
    for (const json::value& item : value.get_array()) {
      out += separator + inner;
      append_indented(out, item, inner);
      separator = ",\n";
    }
    out += "\n" + indent + "]";
  } else {
    out += value.is_string() ? serialized(value.get_string()) : json::serialize(value);
  }
}

// Columns on a terminal, counting one for each UTF-8 sequence.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

void print_json(const json::value& value) {
  std::string text;
  append_indented(text, value, "");
  print(text + "\n");
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string toned(tone how, std::string_view text) {
  static const bool coloured = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  if (!coloured) return std::string(text);
  const char* code = how == tone::good        ? "\033[32m"
                     : how == tone::bad       ? "\033[31m"
                     : how == tone::attention ? "\033[33m"
                                              : "\033[1m";
  return code + std::string(text) + "\033[0m";
}

std::string json_error_line(const error& e) {
  return json::serialize(json::object{{"type", "error"}, {"error", to_json(e)}}) + "\n";
}

}  // namespace ccbox
