// What the plugin tells ccbox-broker when an enclosure is started: which names may not be made where. Bytes
// in a sealed file; the same strings and lists as ccbox/floor.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ccbox::bubblewrap {

struct name_rule {
  std::string glob;    // ccbox/glob.hpp, relative to the anchor
  std::string reason;  // for people
  // When such a file may come into being, and go again, all the same.
  enum class condition : std::uint32_t {
    none,
    git_config,  // moved into place, as configuration of git that can do no harm
    is_new,      // made where none is; what must stay is a mount
  };
  condition when = condition::none;

  bool may_go() const { return when != condition::none; }
};

// A directory inside and what may not be made below it.
struct name_anchor {
  std::string guest;
  std::vector<name_rule> deny;
  std::vector<std::string> exempt;
};

struct shown_mount {
  std::string guest, host;
};

struct broker_orders {
  std::vector<std::string> open;    // paths inside where the kernel answers alone: nothing there is guarded
  std::vector<shown_mount> mounts;  // for reports: what of the host is where
  std::vector<name_anchor> anchors;
};

std::string encode(const broker_orders& orders);
// Nothing: bytes too few or too many.
std::optional<broker_orders> decode_broker_orders(std::string_view bytes);

}  // namespace ccbox::bubblewrap
