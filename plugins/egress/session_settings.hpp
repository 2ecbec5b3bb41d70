// What a session may be told when it is opened, and its limits. All values are texts of config/egress.yaml.
//
// Unknown keys and values out of range are refused (ccbox::plugin::failure, CCBOX_INVALID): a limit that was
// misspelt is not a limit. Immutable afterwards.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ccbox/plugin.hpp"
#include "destination.hpp"

namespace ccbox::egress {

enum class sni_mode { off, log, enforce };
enum class all_proxy_mode { socks5h, http, off };

// A proxy of the operator's network that all connections go through. The rules stay ours, but the name goes
// to it unresolved: which address it dials is its affair. Address literals are checked as ever.
struct upstream_proxy {
  destination at;
  std::string authorization;  // "Basic …", or empty. Never logged
};

struct session_settings {
  using ms = std::chrono::milliseconds;
  all_proxy_mode all_proxy = all_proxy_mode::socks5h;
  sni_mode sni = sni_mode::enforce;
  std::optional<upstream_proxy> upstream;

  std::size_t max_tunnels = 256;  // connections past their first request
  std::size_t max_pending = 64;   // connections before it; the next ones wait in the kernel's queue
  ms connect_timeout{10'000};
  ms head_timeout{10'000};
  ms idle_timeout{1'800'000};
  ms life_limit{28'800'000};
  ms resolve_timeout{5'000};

  // Fixed for operators; tests shorten them.
  ms half_closed_timeout{60'000};    // after the first FIN, without data
  ms client_keep_alive{60'000};      // between two requests
  ms origin_keep_alive{30'000};      // in the pool
  std::size_t max_idle_origins = 8;  // in the pool
  // Whose origins may fill as much memory as the system finds good for throughput; the next ones a fixed
  // amount.
  std::size_t roomy_connections = 16;
  ms drain_limit{1'000};         // after a refusal
  ms attempt_delay{250};         // happy eyeballs
  ms accept_pause{100};          // no descriptors left
  ms denial_window{1'000};       // storms are counted for that long
  std::size_t most_lookups = 4;  // at once; further names wait

  // Asks `options` for every key above that has one in the configuration: max_tunnels, …_timeout_ms,
  // life_limit_ms, all_proxy, sni, upstream (http://host:port or empty), upstream_credentials_file (mode
  // 0600, one line user:password).
  static session_settings read(plugin::options& options);
};

// "Basic " and the base64 of user:password.
std::string basic_authorization(std::string_view user_and_password);

}  // namespace ccbox::egress
