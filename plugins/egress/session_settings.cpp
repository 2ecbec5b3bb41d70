#include "session_settings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ccbox::egress {
namespace {

plugin::failure refused(const std::string& text) {
  return {CCBOX_INVALID, text};
}

std::chrono::milliseconds limit(plugin::options& options, std::string_view key,
                                std::chrono::milliseconds fallback) {
  constexpr std::int64_t week_ms = 7LL * 24 * 3600 * 1000;
  return std::chrono::milliseconds(options.integer(key, fallback.count(), 1, week_ms));
}

std::size_t amount(plugin::options& options, std::string_view key, std::size_t fallback) {
  return static_cast<std::size_t>(options.integer(key, static_cast<std::int64_t>(fallback), 1, 65'536));
}

std::string read_credentials(const std::string& path) {
  const std::string object = "upstream_credentials_file '" + path + "'";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) throw refused(object + " cannot be read: " + std::strerror(errno));
  struct closer {
    int fd;
    ~closer() { ::close(fd); }
  } const guard{fd};
  struct stat facts = {};
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) throw refused(object + " is not a regular file");
  if ((facts.st_mode & 077) != 0)
    throw refused(object + " can be read by others; chmod 600 '" + path + "' and change the password");
  char bytes[1025];
  const auto length = ::read(fd, bytes, sizeof bytes);
  if (length < 0) throw refused(object + " cannot be read: " + std::strerror(errno));
  std::string text(bytes, static_cast<std::size_t>(length));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > 1024 || text.find(':') == text.npos || text.find_first_of("\r\n") != text.npos)
    throw refused(object + " must be one line user:password of at most 1024 bytes");
  return text;
}

std::optional<upstream_proxy> read_upstream(plugin::options& options) {
  const auto url = options.text("upstream");
  const auto credentials = options.text("upstream_credentials_file");
  if (url.empty()) {
    if (!credentials.empty()) throw refused("upstream_credentials_file is set, and upstream is not");
    return std::nullopt;
  }
  constexpr std::string_view scheme = "http://";
  std::string_view authority = url;
  if (authority.substr(0, scheme.size()) != scheme)
    throw refused("upstream '" + url + "' must be http://host:port");
  authority.remove_prefix(scheme.size());
  if (!authority.empty() && authority.back() == '/') authority.remove_suffix(1);
  if (authority.find('@') != authority.npos)
    throw refused(
        "upstream holds credentials; put them into a file and name it by upstream_credentials_file");
  auto parsed_at = parse_authority(authority, 0);
  if (const auto* bad = std::get_if<malformed>(&parsed_at))
    throw refused("upstream '" + url + "' must be http://host:port: " + std::string(bad->why));
  upstream_proxy out{std::get<destination>(std::move(parsed_at)), {}};
  if (!credentials.empty()) out.authorization = basic_authorization(read_credentials(credentials));
  return out;
}

}  // namespace

std::string basic_authorization(std::string_view user_and_password) {
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "Basic ";
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < user_and_password.size() ? static_cast<unsigned char>(user_and_password[i]) : 0;
  };
  for (std::size_t i = 0; i < user_and_password.size(); i += 3) {
    const unsigned bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += alphabet[bits >> 18];
    out += alphabet[bits >> 12 & 63];
    out += i + 1 < user_and_password.size() ? alphabet[bits >> 6 & 63] : '=';
    out += i + 2 < user_and_password.size() ? alphabet[bits & 63] : '=';
  }
  return out;
}

session_settings session_settings::read(plugin::options& options) {
  session_settings s;
  const auto all_proxy = options.choice("all_proxy", {"socks5h", "http", "off"});
  s.all_proxy = all_proxy == "http"  ? all_proxy_mode::http
                : all_proxy == "off" ? all_proxy_mode::off
                                     : all_proxy_mode::socks5h;
  const auto sni = options.choice("sni", {"enforce", "log", "off"});
  s.sni = sni == "off" ? sni_mode::off : sni == "log" ? sni_mode::log : sni_mode::enforce;
  s.upstream = read_upstream(options);
  s.max_tunnels = amount(options, "max_tunnels", s.max_tunnels);
  s.max_pending = amount(options, "max_pending", s.max_pending);
  s.connect_timeout = limit(options, "connect_timeout_ms", s.connect_timeout);
  s.head_timeout = limit(options, "head_timeout_ms", s.head_timeout);
  s.idle_timeout = limit(options, "idle_timeout_ms", s.idle_timeout);
  s.life_limit = limit(options, "life_limit_ms", s.life_limit);
  s.resolve_timeout = limit(options, "resolve_timeout_ms", s.resolve_timeout);
  return s;
}

}  // namespace ccbox::egress
