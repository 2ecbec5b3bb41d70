#include "launch_materials.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "os.hpp"

namespace ccbox {
namespace {

constexpr std::size_t stderr_bytes = 4096;
constexpr std::size_t most_init_bytes = 256 << 20;

// Holds the first 4 KiB of what the launcher writes to its standard error. Nobody has to read it, and who
// writes more gets an error, not a signal.
result<unique_fd> bounded_stderr() {
  auto fd = memory_file("ccbox-stderr");
  if (!fd) return fd;
  if (os::call(SYS_ftruncate, fd->get(), stderr_bytes) < 0 ||
      os::call(SYS_fcntl, fd->get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
    return system_error("seal", "ccbox-stderr", errno);
  }
  return fd;
}

result<unique_fd> open_plan_path(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  unique_fd fd(static_cast<int>(os::call(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!fd && errno == ELOOP) {
    return error{error_code::failed,
                 "open " + quoted(path) + ": it has become, or leads through, a symbolic link",
                 "something changed it while the launch was being prepared: try again"};
  }
  if (!fd) return system_error("open", path, errno);
  return fd;
}

// Whoever may write the file gets a sealed copy: init would make one of itself otherwise, and start anew from
// it.
result<unique_fd> open_init(const std::string& path) {
  unique_fd file(static_cast<int>(os::call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0)));
  if (!file) return system_error("open", path, errno, "ccbox-init is part of the installation");
  struct stat status {};
  if (os::call(SYS_fstat, file.get(), &status) < 0) return system_error("fstat", path, errno);
  if (::geteuid() != 0 && ::geteuid() != status.st_uid) return file;
  return sealed_copy("ccbox-init", file.get(), most_init_bytes, memory_use::program);
}

// Each descriptor of a plan is open here, once more while it is placed, and once in the launcher.
void allow_descriptors(std::size_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  const rlim_t wanted = 3 * count + 512;
  if (count < 100 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

result<launch_materials> gather_materials(const plan& p, const std::string& init_path,
                                          const limit_group& limits) {
  launch_materials m;
  allow_descriptors(p.files.size() + p.paths.size());
  int ends[2];
  if (os::call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
    return system_error("socketpair", "", errno);
  }
  m.channel_here.reset(ends[0]);
  m.channel_there.reset(ends[1]);
  if (p.unconfined) {
    m.channel_copy.reset(static_cast<int>(os::call(SYS_fcntl, ends[0], F_DUPFD_CLOEXEC, 0)));
    if (!m.channel_copy) return system_error("duplicate the channel", "", errno);
  }
  auto init = open_init(init_path);
  if (!init) return init.error();
  m.init = std::move(*init);
  auto errors = bounded_stderr();
  if (!errors) return errors.error();
  m.stderr_file = std::move(*errors);

  auto& wanted = m.request.descriptors;
  wanted = {
      {m.stderr_file.get(), 2}, {m.channel_there.get(), plan::channel_fd}, {m.init.get(), plan::init_fd}};
  for (const plan_file& f : p.files) {
    auto fd = sealed_file(f.label, f.bytes);
    if (!fd) return fd.error();
    wanted.emplace_back(fd->get(), f.number);
    m.plan_descriptors.push_back(std::move(*fd));
  }
  for (const plan_path& path : p.paths) {
    auto fd = open_plan_path(path.host_path);
    if (!fd) return fd.error();
    wanted.emplace_back(fd->get(), path.number);
    m.plan_descriptors.push_back(std::move(*fd));
  }
  if (p.denials > 0) {
    if (os::call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
      return system_error("socketpair", "", errno);
    m.denials_here.reset(ends[0]);
    m.denials_there.reset(ends[1]);
    wanted.emplace_back(ends[1], p.denials);
  }
  m.request.argv = p.argv;
  m.request.env = p.env;
  m.request.identity_userns = p.identity_userns;
  // init ends when our end of the channel closes, and with it everything else; a launcher that is killed
  // before it has started init could leave a child that waits for it (docs/decisions/0008).
  m.request.outlives_parent = true;
  m.request.cgroup_directories = limits.cgroup_directories();
  return m;
}

std::string launch_materials::standard_error() const {
  std::string text(stderr_bytes, '\0');
  const ssize_t n = ::pread(stderr_file.get(), text.data(), text.size(), 0);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

}  // namespace ccbox
