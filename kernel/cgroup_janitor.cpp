#include "cgroup_janitor.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <set>

#include "os.hpp"
#include "process.hpp"

namespace ccbox {
namespace {

class janitor {
 public:
  result<void> remember(const std::string& directory, const std::string& init_path) {
    std::lock_guard lock(mutex_);
    if (!running()) {
      if (auto ok = start(init_path); !ok) return ok;
    }
    if (!send('+', directory)) return system_error("send to the janitor of cgroup", directory, errno);
    remembered_.insert(directory);
    return {};
  }

  void forget(const std::string& directory) {
    std::lock_guard lock(mutex_);
    remembered_.erase(directory);
    send('-', directory);
  }

  bool end(const std::string& directory) {
    std::lock_guard lock(mutex_);
    remembered_.erase(directory);
    return send('x', directory);
  }

 private:
  bool running() { return process_ && !process_->try_wait(); }

  // A janitor that was killed is replaced; the new one hears of everything that exists.
  result<void> start(const std::string& init_path) {
    process_.reset();
    int ends[2];
    if (os::call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
      return system_error("socketpair", "", errno);
    }
    unique_fd theirs(ends[0]);
    socket_.reset(ends[1]);
    auto started = spawn(
        {.argv = {init_path, "--janitor"}, .descriptors = {{theirs.get(), 0}}, .outlives_parent = true});
    if (!started) {
      socket_.reset();
      return started.error();
    }
    process_ = std::move(*started);
    for (const std::string& directory : remembered_)
      send('+', directory);
    return {};
  }

  bool send(char letter, const std::string& directory) {
    const std::string message = letter + directory;
    return socket_ && ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) ==
                          static_cast<ssize_t>(message.size());
  }

  std::mutex mutex_;
  unique_fd socket_;
  std::optional<child> process_;
  std::set<std::string> remembered_;
};

// Never destroyed: the end of this process closes the socket, which is what tells the janitor.
janitor& the_janitor() {
  static janitor* const instance = new janitor;
  return *instance;
}

}  // namespace

result<void> janitor_remember(const std::string& directory, const std::string& init_path) {
  return the_janitor().remember(directory, init_path);
}

void janitor_forget(const std::string& directory) {
  the_janitor().forget(directory);
}

bool janitor_end(const std::string& directory) {
  return the_janitor().end(directory);
}

}  // namespace ccbox
