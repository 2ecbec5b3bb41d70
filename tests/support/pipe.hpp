// A pipe between a test and what it looks at.
#pragma once

#include <string>

#include "unique_fd.hpp"

namespace ccbox::test {

struct pipe_ends {
  unique_fd reader, writer;
};

pipe_ends make_pipe();
std::string read_all(int fd);  // to the end of the file, or to what cannot be read

}  // namespace ccbox::test
