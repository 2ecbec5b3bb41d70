#include "tools.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace ccbox::bubblewrap {

namespace {

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_tool(std::string_view name, const std::string& configured) {
  if (!configured.empty()) return is_program(configured) ? configured : std::string();
  for (const std::string directory : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
    auto path = directory + std::string(name);
    if (is_program(path)) return path;
  }
  return {};
}

}  // namespace ccbox::bubblewrap
