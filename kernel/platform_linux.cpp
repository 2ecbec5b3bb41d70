#include "platform.hpp"

namespace ccbox {

host_platform this_platform() {
  return host_platform::linux_like;
}

}  // namespace ccbox
