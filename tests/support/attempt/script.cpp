#include "script.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

namespace attempt {
namespace {

#define NUMBER(name) \
  { #name, name }
const std::map<std::string, long> constants = {
    {"AT", AT_FDCWD},
    NUMBER(O_RDONLY),
    NUMBER(O_WRONLY),
    NUMBER(O_RDWR),
    NUMBER(O_CREAT),
    NUMBER(O_EXCL),
    NUMBER(O_TRUNC),
    NUMBER(O_APPEND),
    NUMBER(O_PATH),
    NUMBER(O_NOFOLLOW),
    NUMBER(O_DIRECTORY),
    NUMBER(O_CLOEXEC),
    NUMBER(O_NONBLOCK),
    NUMBER(O_TMPFILE),
    NUMBER(O_SYNC),
    NUMBER(O_DSYNC),
    NUMBER(O_NOATIME),
    NUMBER(O_NOCTTY),
    NUMBER(O_ACCMODE),
    NUMBER(O_ASYNC),
    NUMBER(AT_EMPTY_PATH),
    NUMBER(AT_SYMLINK_FOLLOW),
    NUMBER(AT_REMOVEDIR),
    NUMBER(RENAME_NOREPLACE),
    NUMBER(RENAME_EXCHANGE),
    NUMBER(RENAME_WHITEOUT),
    NUMBER(RESOLVE_BENEATH),
    NUMBER(RESOLVE_CACHED),
    NUMBER(RESOLVE_IN_ROOT),
    NUMBER(RESOLVE_NO_MAGICLINKS),
    NUMBER(RESOLVE_NO_SYMLINKS),
    NUMBER(RESOLVE_NO_XDEV),
    NUMBER(S_IFREG),
    NUMBER(S_IFIFO),
    NUMBER(S_IFSOCK),
    NUMBER(S_IFCHR),
    NUMBER(S_IFDIR),
    NUMBER(AF_UNIX),
    NUMBER(SOCK_STREAM),
    NUMBER(SOCK_DGRAM),
    NUMBER(PR_SET_DUMPABLE),
};
#undef NUMBER

#define CALL(name) \
  { #name, SYS_##name }
const std::map<std::string, long> calls = {
#ifdef SYS_open
    CALL(open),      CALL(creat),   CALL(mkdir),     CALL(mknod),     CALL(rename),
    CALL(link),      CALL(symlink), CALL(unlink),    CALL(rmdir),
#endif
    CALL(openat),    CALL(openat2), CALL(mkdirat),   CALL(mknodat),   CALL(renameat),
    CALL(renameat2), CALL(linkat),  CALL(symlinkat), CALL(unlinkat),  CALL(truncate),
    CALL(ftruncate), CALL(fchdir),  CALL(chdir),     CALL(close),     CALL(dup),
    CALL(umask),     CALL(socket),  CALL(bind),      CALL(prctl),     CALL(unshare),
    CALL(chroot),    CALL(getpid),  CALL(gettid),    CALL(fallocate), CALL(name_to_handle_at),
};
#undef CALL

using words = std::vector<std::string>;

struct nonsense : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class interpreter {
 public:
  script_result run(const std::string& script) {
    std::istringstream in(script);
    words step;
    for (std::string word; in >> word;) {
      if (word != ";") {
        step.push_back(word);
        continue;
      }
      if (!perform(std::move(step))) return std::move(result_);
      step.clear();
    }
    perform(std::move(step));
    return std::move(result_);
  }

 private:
  bool perform(words step) {
    if (step.empty()) throw nonsense("an empty step");
    std::string variable;
    if (const auto equals = step[0].find('='); equals != std::string::npos) {
      variable = step[0].substr(0, equals);
      step[0].erase(0, equals + 1);
    }
    errno = 0;
    const long value = call(step);
    result_.error = value < 0 ? errno : 0;
    if (!variable.empty()) variables_[variable] = value;
    return value >= 0;
  }

  long call(const words& step) {
    const auto& name = step[0];
    if (name == "put") {
      const auto text = text_of(step.at(2));
      return ::write(static_cast<int>(value_of(step.at(1))), text.data(), text.size());
    }
    if (name == "get") return get(static_cast<int>(value_of(step.at(1))));
    if (name == "flags") return flags(static_cast<int>(value_of(step.at(1))));
    if (name == "look") return look(text_of(step.at(1)));
    if (name == "in-child") return in_child(words(step.begin() + 1, step.end()));
    const auto known = calls.find(name);
    const auto number = known != calls.end() ? std::optional(known->second) : plain_number(name);
    if (!number) throw nonsense("no such call: " + name);
    long arguments[6] = {};
    for (std::size_t i = 1; i < step.size() && i <= 6; ++i)
      arguments[i - 1] = value_of(step[i]);
    return ::syscall(*number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                     arguments[5]);
  }

  long get(int fd) {
    char text[256];
    const auto size = ::read(fd, text, sizeof text);
    if (size > 0) observe(std::string(text, static_cast<std::size_t>(size)));
    return size;
  }

  long flags(int fd) {
    const int status = ::fcntl(fd, F_GETFL);
    if (status < 0) return status;
    observe(std::to_string(status & ~O_NOFOLLOW) + "/" + std::to_string(::fcntl(fd, F_GETFD)));
    return 0;
  }

  long look(const std::string& path) {
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) {
      observe("errno " + std::to_string(errno));
      return 0;
    }
    char text[96];
    std::snprintf(text, sizeof text, "%o own=%d:%d links=%lu size=%ld", status.st_mode,
                  status.st_uid == ::geteuid(), status.st_gid == ::getegid(),
                  static_cast<unsigned long>(status.st_nlink),
                  S_ISDIR(status.st_mode) ? 0L : static_cast<long>(status.st_size));
    observe(text);
    return 0;
  }

  long in_child(words step) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(perform(std::move(step)) ? 0 : result_.error);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return errno == 0 ? 0 : -1;
  }

  void observe(const std::string& text) { result_.observed += (result_.observed.empty() ? "" : " ") + text; }

  static std::optional<long> plain_number(const std::string& word) {
    if (word.empty()) return std::nullopt;
    char* end = nullptr;
    const auto value = static_cast<long>(std::strtoull(word.c_str(), &end, 0));
    return *end == '\0' && (std::isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-')
               ? std::optional(value)
               : std::nullopt;
  }

  static std::optional<long> number(const std::string& word) {
    long all = 0;
    std::istringstream in(word);
    for (std::string part; std::getline(in, part, '|');) {
      const auto known = constants.find(part);
      const auto value = known != constants.end() ? std::optional(known->second) : plain_number(part);
      if (!value) return std::nullopt;
      all |= *value;
    }
    return word.empty() ? std::nullopt : std::optional(all);
  }

  std::string text_of(const std::string& word) const {
    std::string out;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word.compare(i, 2, "\\x") == 0) {
        out += static_cast<char>(std::stoi(word.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else if (const auto end = word.find('}', i); word[i] == '{' && end != std::string::npos) {
        out += std::to_string(variable(word.substr(i + 1, end - i - 1)));
        i = end;
      } else {
        out += word[i];
      }
    }
    return out;
  }

  long variable(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end()) throw nonsense("no such variable: " + name);
    return found->second;
  }

  long keep(const void* bytes, std::size_t size) {
    kept_.emplace_back(new char[size]);
    std::memcpy(kept_.back().get(), bytes, size);
    return reinterpret_cast<long>(kept_.back().get());
  }
  long keep(const std::string& text) { return keep(text.c_str(), text.size() + 1); }

  // At the end of a page behind which nothing is; with its NUL or without.
  static long at_page_end(const std::string& text, bool with_nul) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto* const two = static_cast<char*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (two == MAP_FAILED || ::munmap(two + page, page) != 0) throw nonsense("mmap");
    const auto size = text.size() + (with_nul ? 1 : 0);
    std::memcpy(two + page - size, text.c_str(), size);
    return reinterpret_cast<long>(two + page - size);
  }

  // "N/rest": N, and the rest is left in `word`.
  static std::size_t take_count(std::string& word) {
    const auto slash = std::min(word.find('/'), word.size());
    const auto count = std::stoul(word.substr(0, slash));
    word.erase(0, std::min(slash + 1, word.size()));
    return count;
  }

  long value_of(const std::string& word) {
    const auto after = [&](const char* prefix) -> std::optional<std::string> {
      if (!word.starts_with(prefix)) return std::nullopt;
      return word.substr(std::strlen(prefix));
    };
    if (word[0] == '$') return variable(word.substr(1));
    if (const auto value = number(word)) return *value;
    if (word == "bad") return 8;
    if (const auto text = after("edge:")) return at_page_end(text_of(*text), true);
    if (const auto text = after("cut:")) return at_page_end(text_of(*text), false);
    if (auto text = after("long:")) {
      const auto count = take_count(*text);
      return keep(std::string(count, 'a') + text_of(*text));
    }
    if (auto text = after("deep:")) {
      const auto count = take_count(*text);
      std::string path;
      while (path.size() < count)
        path += path.size() % 2 == 0 ? '.' : '/';
      return keep(path + text_of(*text));
    }
    if (const auto text = after("how:")) {
      std::istringstream in(*text);
      std::string flags, mode, resolve;
      std::getline(in, flags, ',');
      std::getline(in, mode, ',');
      std::getline(in, resolve, ',');
      open_how how{};
      how.flags = static_cast<__u64>(number(flags).value());
      how.mode = static_cast<__u64>(number(mode).value());
      how.resolve = static_cast<__u64>(number(resolve).value());
      return keep(&how, sizeof how);
    }
    if (const auto text = after("un:")) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, text_of(*text).c_str(), sizeof address.sun_path - 1);
      return keep(&address, sizeof address);
    }
    if (const auto text = after("zero:")) return keep(std::string(std::stoul(*text), '\0'));
    return keep(text_of(word));
  }

  std::map<std::string, long> variables_;
  std::vector<std::unique_ptr<char[]>> kept_;
  script_result result_;
};

}  // namespace

script_result run_script(const std::string& script) {
  try {
    return interpreter().run(script);
  } catch (const std::exception& e) {
    return {usage_error, e.what()};
  }
}

}  // namespace attempt
