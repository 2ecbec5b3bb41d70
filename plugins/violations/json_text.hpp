// A JSON object of one line, for a violation's `raw`. Whatever bytes go in, valid JSON comes out: control
// bytes and what is no UTF-8 are written as the four characters \xNN.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ccbox::violations {

class json_object {
 public:
  json_object& text(std::string_view key, std::string_view value);
  std::string str() const { return body_ + "}"; }

 private:
  void append_string(std::string_view bytes);
  std::string body_ = "{";
};

}  // namespace ccbox::violations
