// Cuts what a command writes into lines, and gives those that speak of a refused system call to whoever
// asked. Any bytes in pieces of any size: a line ends at \n or \r, or where the command ends. Of a line that
// is longer than `most_bytes` nothing is read.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace ccbox::violations {

class line_reader {
 public:
  static constexpr std::size_t most_bytes = 4096;
  using sink = std::function<void(std::string_view line)>;

  void add(std::string_view bytes, const sink& each);
  void end(const sink& each);

 private:
  void keep(std::string_view bytes);

  std::string begun_;      // of the line that has not ended yet
  bool too_long_ = false;  // it is
};

}  // namespace ccbox::violations
