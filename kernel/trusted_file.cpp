#include "trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "host.hpp"
#include "os.hpp"

namespace ccbox {

namespace {

class trusted_file {
 public:
  trusted_file(std::string_view kind, const std::string& path)
      : kind_(kind), path_(path), slash_(path.rfind('/')) {}

  result<unique_fd> open() const {
    const std::string parent = slash_ == std::string::npos ? "."
                               : slash_ == 0               ? "/"
                                                           : path_.substr(0, slash_);
    const unique_fd directory(static_cast<int>(
        os::call(SYS_openat, AT_FDCWD, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0)));
    if (!directory) return missing(parent);
    struct stat status {};
    if (os::call(SYS_fstat, directory.get(), &status) != 0) return system_error("fstat", parent, errno);
    if (auto trusted = check("its directory " + quoted(parent), parent, status); !trusted)
      return trusted.error();

    // O_NONBLOCK: a FIFO must not wait for its writer.
    const std::string name = slash_ == std::string::npos ? path_ : path_.substr(slash_ + 1);
    unique_fd fd(static_cast<int>(os::call(SYS_openat, directory.get(), name.c_str(),
                                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0)));
    if (!fd && errno == ELOOP)
      return refusal(error_code::invalid_argument, "is a symbolic link", "name the file that it points to");
    if (!fd) return missing(path_);
    if (os::call(SYS_fstat, fd.get(), &status) != 0) return system_error("fstat", path_, errno);
    if (!S_ISREG(status.st_mode)) return refusal(error_code::invalid_argument, "is not a regular file");
    if (auto trusted = check("it", path_, status); !trusted) return trusted.error();
    return fd;
  }

 private:
  // Call it while errno tells why.
  error missing(const std::string& object) const {
    return system_error("open", object, errno, errno == ENOENT ? "name a " + kind_ + " that exists" : "");
  }

  error refusal(error_code code, const std::string& what, std::string hint = {}) const {
    return {code, kind_ + " " + quoted(path_) + " " + what, std::move(hint)};
  }

  // `object` is the file or its directory, `name` what to call it.
  result<void> check(const std::string& name, const std::string& object, const struct stat& status) const {
    if (status.st_uid != 0 && status.st_uid != static_cast<uid_t>(os::call(SYS_geteuid)))
      return refusal(error_code::permission_denied,
                     "is not loaded: " + name + " belongs to uid " + std::to_string(status.st_uid),
                     // Where root's files seem to belong to nobody.
                     inside_enclosure()
                         ? "this is inside an enclosure of ccbox already: run ccbox outside of it"
                         : "a " + kind_ + " and its directory belong to root or to the user who runs ccbox");
    if (status.st_mode & (S_IWGRP | S_IWOTH))
      return refusal(error_code::permission_denied,
                     "is not loaded: " + name + " may be written by group or others",
                     "chmod go-w " + quoted(object));
    return {};
  }

  const std::string kind_;
  const std::string& path_;
  const std::string::size_type slash_;
};

}  // namespace

result<unique_fd> open_trusted_file(std::string_view kind, const std::string& path) {
  return trusted_file(kind, path).open();
}

}  // namespace ccbox
