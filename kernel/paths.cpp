#include "paths.hpp"

#include <unistd.h>

#include <climits>
#include <filesystem>

namespace ccbox {

namespace fs = std::filesystem;

namespace {

// Both sides resolved: the build directory may have been named through a symbolic link.
bool is_inside(const fs::path& file, const fs::path& directory) {
  std::error_code missing;
  const auto real = fs::canonical(directory, missing);
  if (missing) return false;
  const auto relative = file.lexically_relative(real);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

result<installation> find_installation_of(const std::string& executable) {
  const fs::path file(executable);
  if (is_inside(file, CCBOX_BINARY_DIR)) {
    const fs::path build(CCBOX_BINARY_DIR), config = fs::path(CCBOX_SOURCE_DIR) / "config";
    return installation{build / "bin/ccbox-init",
                        build / "plugins",
                        config / "plugins.yaml",
                        config / "policy.yaml",
                        executable,
                        config / "egress.yaml",
                        build / "bin/ccbox-net-connect",
                        build / "bin/ccbox-broker"};
  }
  if (!file.is_absolute() || file.parent_path().filename() != "bin")
    return error{error_code::not_found,
                 "cannot tell where ccbox is installed: " + ccbox::quoted(executable) +
                     " is not in a directory called bin",
                 "run ccbox from where `cmake --install` put it"};
  const auto prefix = file.parent_path().parent_path();
  const auto library = prefix / "lib/ccbox";
  const auto config = prefix == "/usr" ? fs::path("/etc/ccbox") : prefix / "etc/ccbox";
  return installation{library / "ccbox-init",
                      library / "plugins",
                      config / "plugins.yaml",
                      config / "policy.yaml",
                      executable,
                      config / "egress.yaml",
                      library / "ccbox-net-connect",
                      library / "ccbox-broker"};
}

result<installation> find_installation() {
  char buffer[PATH_MAX];
  const auto length = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  if (length < 0) return system_error("readlink", "/proc/self/exe", errno, "mount /proc");
  std::string executable(buffer, static_cast<std::size_t>(length));
  // An upgrade under a running process: its parts are still where the executable was.
  constexpr std::string_view deleted = " (deleted)";
  if (executable.ends_with(deleted) && ::access(executable.c_str(), F_OK) != 0)
    executable.resize(executable.size() - deleted.size());
  return find_installation_of(executable);
}

}  // namespace ccbox
