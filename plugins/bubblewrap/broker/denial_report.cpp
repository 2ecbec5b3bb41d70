#include "broker/denial_report.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace ccbox::bubblewrap {

namespace {

// The length of the UTF-8 character that `text` begins with; 0: none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xc2 ? 0
                             : byte(0) < 0xe0 ? 2
                             : byte(0) < 0xf0 ? 3
                             : byte(0) < 0xf5 ? 4
                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond the last plane.
  if (length == 3 && ((byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f))) return 0;
  if (length == 4 && ((byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f))) return 0;
  return length;
}

void put_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const auto length = character(text);
    if (length == 0 || lead < 0x20 || lead == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\\\x%02x", lead);
      out += escape;
      text.remove_prefix(1);
      continue;
    }
    if (lead == '"' || lead == '\\') out += '\\';
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  out += '"';
}

void put_member(std::string& out, const char* key, std::string_view text) {
  out += out.empty() ? "{\"" : ",\"";
  out += key;
  out += "\":";
  put_text(out, text);
}

}  // namespace

denial_report::denial_report(descriptor to, std::vector<shown_mount> mounts)
    : to_(std::move(to)), mounts_(std::move(mounts)) {}

std::string denial_report::host_path(const std::string& inside) const {
  const shown_mount* best = nullptr;
  for (const auto& each : mounts_) {
    const auto& at = each.guest;
    const bool around =
        at == "/" || (inside.starts_with(at) && (inside.size() == at.size() || inside[at.size()] == '/'));
    if (around && (!best || at.size() > best->guest.size())) best = &each;
  }
  if (!best) return {};
  const auto rest = best->guest == "/" ? inside : inside.substr(best->guest.size());
  return best->host == "/" ? rest : best->host + rest;
}

void denial_report::tell(const caller& who, const char* operation, const std::string& path,
                         const name_rule& rule) {
  std::string line;
  put_member(line, "operation", operation);
  put_member(line, "path", path);
  put_member(line, "hostPath", host_path(path));
  put_member(line, "rule", rule.glob);
  put_member(line, "reason", rule.reason);
  put_member(line, "program", who.program());
  put_member(line, "errno", "EACCES");
  line += ",\"pid\":" + std::to_string(who.ids().process) + ",\"count\":" + std::to_string(untold_ + 1) + "}";
  if (::send(to_.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
      static_cast<ssize_t>(line.size()))
    untold_ = 0;
  else
    ++untold_;
}

}  // namespace ccbox::bubblewrap
