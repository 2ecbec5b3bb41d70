#include "decision_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "ccbox/plugin.hpp"
#include "json_text.hpp"

namespace ccbox::egress {
namespace {

std::string now_text() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts = {};
  ::gmtime_r(&now.tv_sec, &parts);
  char text[64];
  const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text;
}

}  // namespace

decision_log::decision_log(const std::string& path, counters& count) : counters_(count) {
  if (path.empty()) return;
  // Never waits for the reader of a FIFO, never follows a link.
  fd_ = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd_ < 0)
    throw plugin::failure(CCBOX_INVALID, "decision_log '" + path + "' cannot be opened: " +
                                             std::strerror(errno) + "; name a file that can be written");
  struct stat facts = {};
  if (::fstat(fd_, &facts) == 0 && S_ISREG(facts.st_mode)) {
    char last = '\n';
    torn_ = facts.st_size > 0 && ::pread(fd_, &last, 1, facts.st_size - 1) == 1 && last != '\n';
    return;
  }
  ::close(fd_);
  throw plugin::failure(CCBOX_INVALID, "decision_log '" + path + "' is not a regular file");
}

decision_log::~decision_log() {
  if (fd_ < 0) return;
  flush();
  ::close(fd_);
}

void decision_log::add(const decision_record& r) {
  if (fd_ < 0) return;
  json_object line;
  line.text("time", now_text()).text("session", r.session).text("protocol", r.protocol);
  line.text("host", r.host).number("port", r.port).text("decision", r.outcome).text("rule", r.rule);
  line.text("origin", r.origin).text("reason", r.reason);
  line.number("bytes_up", r.bytes_up).number("bytes_down", r.bytes_down);
  line.number("ms", static_cast<std::uint64_t>(r.took.count()));
  const auto text = line.str();
  const std::lock_guard lock(mutex_);
  if (lines_.size() + text.size() + 1 > most_bytes) write_out();
  lines_ += text;
  lines_ += '\n';
}

void decision_log::flush() {
  if (fd_ < 0) return;
  const std::lock_guard lock(mutex_);
  write_out();
}

void decision_log::write_out() {
  if (lines_.empty()) return;
  if (torn_) lines_.insert(0, 1, '\n');
  ssize_t written = 0;
  do
    written = ::write(fd_, lines_.data(), lines_.size());
  while (written < 0 && errno == EINTR);
  const auto whole = static_cast<std::size_t>(std::max<ssize_t>(written, 0));
  const auto rest = lines_.begin() + static_cast<std::ptrdiff_t>(whole);
  counters_.log_lines_lost +=
      static_cast<std::uint64_t>(std::count(std::max(rest, lines_.begin() + torn_), lines_.end(), '\n'));
  if (whole > 0) torn_ = lines_[whole - 1] != '\n';
  lines_.clear();
}

}  // namespace ccbox::egress
