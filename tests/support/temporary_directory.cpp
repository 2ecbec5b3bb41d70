#include "support/temporary_directory.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ccbox::test {

namespace fs = std::filesystem;

temporary_directory::temporary_directory() {
  auto pattern = (fs::canonical(fs::temp_directory_path()) / "ccbox-test-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  path_ = pattern;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string temporary_directory::write(std::string_view name, std::string_view bytes) const {
  const auto path = *this / name;
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::system_error(errno, std::generic_category(), "write " + path);
  return path;
}

}  // namespace ccbox::test
