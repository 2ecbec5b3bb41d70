#include "access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "unique_fd.hpp"

namespace ccbox::server {

namespace {

constexpr std::size_t least_token_bytes = 16;
constexpr std::size_t most_token_bytes = 4096;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// localhost, 127.0.0.1 or [::1], with or without a port.
bool names_this_host(std::string_view host) {
  const auto colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    const auto port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    host = host.substr(0, colon);
  }
  return same_word(host, "localhost") || host == "127.0.0.1" || host == "[::1]";
}

// Takes the same time wherever they differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

error denied(std::string what, std::string hint) {
  return {error_code::permission_denied, std::move(what), std::move(hint)};
}

}  // namespace

result<void> may_ask(const access_rules& rules, const caller& who) {
  if (!names_this_host(who.host))
    return denied("the Host header does not name this machine", "ask for localhost, 127.0.0.1 or [::1]");
  if (who.origin && std::find(rules.allowed_origins.begin(), rules.allowed_origins.end(), *who.origin) ==
                        rules.allowed_origins.end())
    return denied("requests from this Origin are not served", "start cc_server with --allow-origin ORIGIN");
  if (!who.by_tcp) return {};
  constexpr std::string_view scheme = "Bearer ";
  if (!who.authorization || who.authorization->size() <= scheme.size() ||
      !same_word(who.authorization->substr(0, scheme.size()), scheme) ||
      !same_secret(who.authorization->substr(scheme.size()), rules.token))
    return denied("the token is missing or is another one", "send `Authorization: Bearer TOKEN`");
  return {};
}

result<std::string> read_token(const std::string& file) {
  const unique_fd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return system_error("open", file, errno, "write a long random word into it, mode 0600");
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return system_error("stat", file, errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077))
    return denied("the token file " + quoted(file) + " is not private to this user",
                  "chmod 600 " + quoted(file));
  std::string text(most_token_bytes + 1, '\0');
  const auto length = ::read(fd.get(), text.data(), text.size());
  if (length < 0) return system_error("read", file, errno);
  text.resize(static_cast<std::size_t>(length));
  constexpr char white[] = " \t\r\n";
  text.erase(text.find_last_not_of(white) + 1);
  text.erase(0, text.find_first_not_of(white));
  const bool printable_word =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (text.size() < least_token_bytes || text.size() > most_token_bytes || !printable_word)
    return error{
        error_code::invalid_argument,
        "the token file " + quoted(file) + " does not hold one word of 16 to 4096 printable characters",
        "openssl rand -hex 32 > FILE"};
  return text;
}

}  // namespace ccbox::server
