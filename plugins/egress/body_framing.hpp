// Follows a message body over a byte stream, so that exactly its bytes are passed on and the next message
// begins where it ends. Chunked bodies are framed anew: extensions and trailers do not pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ccbox::egress {

// Strict decoder of the chunked coding: sizes are 1 to 16 hex digits with nothing around them but an
// extension, lines end in CRLF and have no other control byte than a tab, a line (extensions included) has
// 4 KiB at most, the trailer 16 KiB. The answer does not depend on how the input is cut.
class chunked_decoder {
 public:
  enum class state { more, done, malformed };
  struct step {
    state now = state::more;
    std::size_t consumed = 0;  // of the input; at `done` the rest is not the body's
  };
  // Appends the data of the chunks to `data`. After `done` and `malformed` it consumes nothing more.
  step feed(std::string_view input, std::string& data);

 private:
  enum class part { size, extension, size_lf, data, data_cr, data_lf, trailer, trailer_lf, done, malformed };

  part after(char c);  // which part comes behind this byte; any part but `data`
  part after_size(char c);
  part after_trailer_line();

  part part_ = part::size;
  std::uint64_t left_ = 0;  // of the chunk; while its size is read, the size so far
  unsigned digits_ = 0;
  std::size_t line_bytes_ = 0;  // of the present line, its end not included
  std::size_t trailer_bytes_ = 0;
};

// One chunk: size line, data, CRLF. Empty data gives nothing; last_chunk ends the body.
void append_chunk(std::string& out, std::string_view data);
constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace ccbox::egress
