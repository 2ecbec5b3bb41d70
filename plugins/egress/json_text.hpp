// JSON objects of one line, for events and the decision log. Bytes that are not printable ASCII are written
// as \u00XX: the text is valid UTF-8 whatever a client sent, and shows it byte by byte.
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
