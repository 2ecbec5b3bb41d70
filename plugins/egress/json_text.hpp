// JSON objects of one line, for events and the decision log. Who decodes a text finds printable ASCII in it
// whatever a client sent: every other byte, and the backslash, is the four characters \xNN.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ccbox::egress {

class json_object {
 public:
  json_object& text(std::string_view key, std::string_view value);
  json_object& number(std::string_view key, std::uint64_t value);
  std::string str() const { return body_ + "}"; }

 private:
  void key(std::string_view name);
  std::string body_ = "{";
};

}  // namespace ccbox::egress
