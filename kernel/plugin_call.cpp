#include "plugin_call.hpp"

namespace ccbox {

error_code to_error_code(ccbox_status status) {
  switch (status) {
    case CCBOX_INVALID:
      return error_code::invalid_argument;
    case CCBOX_UNAVAILABLE:
      return error_code::unavailable;
    case CCBOX_UNENFORCEABLE:
      return error_code::unenforceable;
    case CCBOX_TOO_LARGE:
      return error_code::too_large;
    default:
      return error_code::failed;
  }
}

void text_buffer::assign(std::string_view text) {
  text_.length = std::min(text.size(), bytes_.size());
  std::copy_n(text.begin(), text_.length, bytes_.begin());
}

}  // namespace ccbox
