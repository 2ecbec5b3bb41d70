// Follows a message body over a byte stream, so that exactly its bytes are passed on and the next message
// begins where it ends. Chunked bodies are framed anew: extensions and trailers do not pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "request_head.hpp"

namespace ccbox::egress {

// Strict decoder of the chunked coding: sizes are 1 to 16 hex digits, lines end in CRLF, a line (extensions
// included) has 4 KiB at most, the trailer 16 KiB.
class chunked_decoder {
 public:
  enum class state { more, done, malformed };
  struct step {
    state now = state::more;
    std::size_t consumed = 0;  // of the input; at `done` the rest is not the body's
  };
  // Appends the data of the chunks to `data`.
  step feed(std::string_view input, std::string& data);

 private:
  enum class part {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer,
    trailer_lf,
    end_lf,
    done
  };
  part part_ = part::size;
  std::uint64_t left_ = 0;
  unsigned digits_ = 0;
  std::size_t line_bytes_ = 0, trailer_bytes_ = 0;
  bool failed_ = false;
};

// One chunk: size line, data, CRLF. Empty data gives nothing; last_chunk ends the body.
void append_chunk(std::string& out, std::string_view data);
constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace ccbox::egress
