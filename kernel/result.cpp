#include "result.hpp"

#include <algorithm>
#include <stdexcept>

namespace ccbox {

std::string_view to_string(error_code code) {
  switch (code) {
    case error_code::invalid_argument:
      return "invalid_argument";
    case error_code::not_found:
      return "not_found";
    case error_code::conflict:
      return "conflict";
    case error_code::illegal_state:
      return "illegal_state";
    case error_code::permission_denied:
      return "permission_denied";
    case error_code::unavailable:
      return "unavailable";
    case error_code::unenforceable:
      return "unenforceable";
    case error_code::too_large:
      return "too_large";
    case error_code::timeout:
      return "timeout";
    case error_code::failed:
      return "failed";
  }
  return "failed";
}

error system_error(std::string_view call, std::string_view object, int error_number, std::string hint) {
  error e;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      e.code = error_code::not_found;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      e.code = error_code::permission_denied;
      break;
    case EEXIST:
    case EBUSY:
      e.code = error_code::conflict;
      break;
    case E2BIG:
    case ENAMETOOLONG:
    case EFBIG:
      e.code = error_code::too_large;
      break;
    default:
      e.code = error_code::failed;
  }
  e.what = std::string(call);
  if (!object.empty()) e.what += " " + quoted(object);
  const char* name = ::strerrorname_np(error_number);
  e.what += std::string(": ") + ::strerror(error_number) + (name ? " (" + std::string(name) + ")" : "");
  e.hint = std::move(hint);
  // Whatever the call was for, these have one cause.
  if (error_number == EMFILE) e.hint = "raise the limit of open files: ulimit -n 256";
  if (error_number == EFBIG)
    e.hint = "raise the limit of file sizes (ulimit -f), which counts memory files too";
  return e;
}

void throw_exception_from_error(const error& e, const boost::source_location& where) {
  throw std::logic_error("result without value at " + where.to_string() + ": " + e.what);
}

namespace {

bool is_plain(char c, bool escape_quotes) {
  return c >= 0x20 && c < 0x7f && !(escape_quotes && (c == '\'' || c == '\\'));
}

std::string escaped(std::string_view text, bool escape_quotes) {
  constexpr char hex[] = "0123456789abcdef";
  const auto odd =
      std::find_if_not(text.begin(), text.end(), [&](char c) { return is_plain(c, escape_quotes); });
  std::string out(text.begin(), odd);  // mostly all of it
  text.remove_prefix(out.size());
  while (!text.empty()) {
    char32_t point = 0;
    const std::size_t length = utf8_sequence(text, point);
    if (length > 0 && is_printable(point)) {
      if (escape_quotes && (point == '\'' || point == '\\')) out += '\\';
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    for (std::size_t i = 0; i < std::max<std::size_t>(length, 1); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte == '\n')
        out += "\\n";
      else if (byte == '\t')
        out += "\\t";
      else if (byte == '\r')
        out += "\\r";
      else
        (out += "\\x") += {hex[byte >> 4], hex[byte & 15]};
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace

std::string quoted(std::string_view text) {
  return "'" + escaped(text, true) + "'";
}

std::string printable(std::string_view text) {
  return escaped(text, false);
}

}  // namespace ccbox
