// Calling into a plugin: the buffer for its line of text, what its status means, and an end to what it
// throws.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "ccbox/plugin.h"
#include "result.hpp"

namespace ccbox {

error_code to_error_code(ccbox_status status);  // statuses that nobody knows are `failed`

// A line that a plugin writes; it may claim any length.
class text_buffer {
 public:
  text_buffer() : text_{bytes_.data(), bytes_.size(), 0} {}
  text_buffer(const text_buffer&) = delete;
  text_buffer& operator=(const text_buffer&) = delete;

  ccbox_text* raw() { return &text_; }
  // For structs that hold the text by value: give them the handle, take the length back.
  ccbox_text handle() const { return text_; }
  void set_length(std::size_t length) { text_.length = length; }

  bool overrun() const { return text_.length > bytes_.size(); }
  std::string_view view() const { return {bytes_.data(), std::min(text_.length, bytes_.size())}; }
  void assign(std::string_view text);  // cut to what fits

 private:
  std::array<char, 1024> bytes_;
  ccbox_text text_;
};

// A plugin must not throw; one that does has failed, and `text` says so.
template <class Call>
ccbox_status call_plugin(Call&& call, text_buffer& text) {
  try {
    return call();
  } catch (...) {
    text.assign("an exception left the plugin");
    return CCBOX_FAILED;
  }
}

}  // namespace ccbox
