#include "net_connect/net_connect.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "net_connect/relay.hpp"
#include "net_connect/socks_client.hpp"

namespace ccbox {

namespace {

struct proxy_address {
  std::string host;  // an address
  std::uint16_t port = 0;
};

bool parse_port(std::string_view text, std::uint16_t& port) {
  if (text.empty() || text.size() > 5) return false;
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  port = static_cast<std::uint16_t>(value);
  return value >= 1 && value <= 0xffff;
}

bool parse_proxy(std::string_view text, proxy_address& into) {
  const auto colon = text.rfind(':');
  if (colon == text.npos || !parse_port(text.substr(colon + 1), into.port)) return false;
  auto host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  into.host = host;
  in6_addr scratch;
  return inet_pton(AF_INET, into.host.c_str(), &scratch) == 1 ||
         inet_pton(AF_INET6, into.host.c_str(), &scratch) == 1;
}

// SCHEME://[USER:PASSWORD@]IP:PORT[/]
bool parse_proxy_url(std::string_view url, proxy_address& into, std::string& credentials) {
  const auto scheme = url.find("://");
  if (scheme == url.npos) return false;
  url.remove_prefix(scheme + 3);
  if (const auto at = url.rfind('@'); at != url.npos) {
    if (credentials.empty()) credentials = url.substr(0, at);
    url.remove_prefix(at + 1);
  }
  if (!url.empty() && url.back() == '/') url.remove_suffix(1);
  return parse_proxy(url, into);
}

// Without control characters, whatever the proxy sent: it goes to a terminal.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r') break;
    out += byte < 0x20 || byte == 0x7f || byte >= 0x80 ? '?' : c;
  }
  return out;
}

class attempt {
 public:
  explicit attempt(const char* name) : name_(name) {}

  bool read_arguments(int argc, char** argv) {
    int next = 1;
    bool has_proxy = false;
    for (; next < argc && argv[next][0] == '-' && argv[next][1] != '\0'; ++next) {
      if (std::strcmp(argv[next], "--") == 0) {
        ++next;
        break;
      }
      if (std::strcmp(argv[next], "--proxy") != 0 || next + 1 == argc) return usage();
      if (!parse_proxy(argv[++next], proxy_)) {
        say(std::string("--proxy ") + one_line(argv[next]) + " is no IP:PORT");
        return false;
      }
      has_proxy = true;
    }
    if (argc - next != 2) return usage();
    if (!parse_port(argv[next + 1], port_)) {
      say("the port is a number from 1 to 65535, not '" + one_line(argv[next + 1]) + "'");
      return usage();
    }
    host_ = argv[next];
    if (host_.size() > 2 && host_.front() == '[' && host_.back() == ']')
      host_ = host_.substr(1, host_.size() - 2);
    if (host_.empty() || host_.size() > 255) {
      say("a host has between 1 and 255 bytes");
      return false;
    }
    if (const char* token = std::getenv("CCBOX_PROXY_TOKEN")) credentials_ = token;
    for (const char* name : {"ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"}) {
      if (has_proxy) break;
      const char* url = std::getenv(name);
      has_proxy = url != nullptr && parse_proxy_url(url, proxy_, credentials_);
    }
    if (!has_proxy)
      say("there is no proxy: neither ALL_PROXY nor HTTP_PROXY names one as SCHEME://IP:PORT; inside an "
          "enclosure with the network on they do, elsewhere use --proxy IP:PORT");
    return has_proxy;
  }

  int run() {
    const int socket = connect_to_proxy();
    if (socket < 0) return net_connect_failed;
    const auto answer = socks_connect(socket, host_, port_, credentials_);
    switch (answer.what) {
      case socks_answer::state::connected:
        return relay(socket) ? 0 : net_connect_unreachable;
      case socks_answer::state::refused: {
        close(socket);
        const bool by_rules = answer.code == 2;
        std::string text = std::string(socks_reply_text(answer.code));
        if (by_rules) {
          const int second = connect_to_proxy();
          const auto explained =
              second < 0 ? std::string() : one_line(ask_http_proxy(second, host_, port_, credentials_));
          if (second >= 0) close(second);
          if (!explained.empty()) text += ": " + explained;
        }
        say(target() + ": " + text);
        return by_rules ? net_connect_refused : net_connect_unreachable;
      }
      case socks_answer::state::broken:
        break;
    }
    say("the proxy " + proxy_.host + ":" + std::to_string(proxy_.port) + ": " + answer.why);
    return net_connect_failed;
  }

 private:
  bool usage() const {
    say("usage: net-connect [--proxy IP:PORT] HOST PORT");
    return false;
  }

  void say(const std::string& text) const {
    const std::string line = std::string(name_) + ": " + text + "\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  }

  std::string target() const {
    const bool is_v6 = host_.find(':') != host_.npos;
    return one_line((is_v6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(port_));
  }

  int connect_to_proxy() const {
    sockaddr_storage address{};
    socklen_t size = sizeof(sockaddr_in);
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    if (inet_pton(AF_INET, proxy_.host.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(proxy_.port);
    } else {
      inet_pton(AF_INET6, proxy_.host.c_str(), &v6.sin6_addr);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(proxy_.port);
      size = sizeof v6;
    }
    const int socket = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket >= 0 && connect(socket, reinterpret_cast<sockaddr*>(&address), size) == 0) {
      const int on = 1;
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return socket;
    }
    say("connect to the proxy " + proxy_.host + ":" + std::to_string(proxy_.port) + ": " +
        std::strerror(errno) + "; is it that of a session, or of `ccbox proxy`, that still runs?");
    if (socket >= 0) close(socket);
    return -1;
  }

  const char* name_;
  proxy_address proxy_;
  std::string host_, credentials_;
  std::uint16_t port_ = 0;
};

}  // namespace

int net_connect(int argc, char** argv) {
  attempt wanted(argc > 0 ? argv[0] : "net-connect");
  return wanted.read_arguments(argc, argv) ? wanted.run() : net_connect_failed;
}

}  // namespace ccbox
