// Where a text speaks of a refused system call: "Permission denied", "Operation not permitted" (in any case
// of their first letter), EACCES, EPERM. Linear in the text, whatever is in it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace ccbox::violations {

class refusal_markers {
 public:
  explicit refusal_markers(std::string_view text);

  struct place {
    std::size_t begin = std::string_view::npos;  // npos: there is none
    std::size_t length = 0;
    bool is_name = false;  // EACCES, EPERM
  };
  // The first that begins at or after `from`; `from` never goes back.
  place next(std::size_t from);

 private:
  std::string_view text_;
  std::array<std::size_t, 4> found_{};  // one a marker, npos: no more
};

}  // namespace ccbox::violations
