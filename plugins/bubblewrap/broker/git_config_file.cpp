#include "broker/git_config_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "broker/git_config.hpp"

namespace ccbox::bubblewrap {

namespace {

// Nothing: what is there is no such file, or errno says why it cannot be read.
std::optional<std::string> read_config(const place& from, struct stat& status) {
  constexpr std::size_t most = std::size_t{1} << 20;
  const descriptor file(::openat(from.parent.get(), from.name.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
  errno = EACCES;
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  errno = EFBIG;
  if (size > most) return std::nullopt;
  text.resize(size);
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto put = ::write(fd, text.data(), text.size());
    if (put < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

outcome install_git_config(desk& at, const caller& who, const place& source, const place& target,
                           const name_rule& rule) {
  const auto refuse = [&](const std::string& why) {
    auto said = rule;
    said.reason = why + "; " + rule.reason;
    return at.deny(who, "rename", target, said);
  };
  if (source.directory != target.directory || !source.slashes.empty() || !target.slashes.empty())
    return refuse("configuration comes into place from a file beside it");
  struct stat status;
  const auto text = read_config(source, status);
  if (!text)
    return errno == EFBIG || errno == EACCES || errno == ELOOP
               ? refuse("not a file of at most 1 MiB that can be read")
               : outcome::failure(errno);
  if (const auto why = objection_to_git_config(*text, target.directory); !why.empty()) return refuse(why);

  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    return outcome::failure(EAGAIN);
  const auto made = ".ccbox-" + std::to_string(number);
  descriptor file(::openat(target.parent.get(), made.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return outcome::failure(errno);
  const bool is_written = write_all(file.get(), *text) && ::fchmod(file.get(), status.st_mode & 0777) == 0;
  if (is_written && ::syscall(SYS_renameat2, target.parent.get(), made.c_str(), target.parent.get(),
                              target.name.c_str(), 0) == 0) {
    if (source.name != target.name) ::unlinkat(source.parent.get(), source.name.c_str(), 0);
    return {};
  }
  const int failure = errno;
  ::unlinkat(target.parent.get(), made.c_str(), 0);
  return failure == EBUSY ? at.deny(who, "rename", target, rule) : outcome::failure(failure);
}

}  // namespace ccbox::bubblewrap
