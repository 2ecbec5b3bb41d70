#include "plugins/egress/decision_log.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::egress;

namespace {

// No file grows beyond `bytes` while it lives.
class full_disk {
 public:
  explicit full_disk(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit low = {bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  }
  ~full_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  full_disk(const full_disk&) = delete;

 private:
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_ = {};
};

std::string content(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

decision_record about(std::string_view host) {
  decision_record r;
  r.host = host;
  return r;
}

// The line that begins where `at` says is a whole one, about `host`.
void check_line(const std::string& text, std::size_t at, const std::string& host) {
  const auto line = text.substr(at, text.find('\n', at) - at);
  CHECK(line.starts_with("{\"time\":"));
  CHECK(line.find("\"host\":\"" + host + "\"") != std::string::npos);
  CHECK(line.back() == '}');
}

}  // namespace

TEST_CASE("after a line that a full disk cut, the next has a line of its own") {
  const test::temporary_directory directory;
  const auto file = directory.path() + "/decisions";
  counters count;
  decision_log log(file, count);
  {
    const full_disk disk(20);
    log.add(about("cut.test"));
    log.flush();
    log.add(about("lost.test"));
    log.flush();
  }
  CHECK(content(file).size() == 20);
  CHECK(count.log_lines_lost == 2);
  log.add(about("first.test"));
  log.flush();
  log.add(about("second.test"));
  log.flush();
  const auto text = content(file);
  REQUIRE(text[20] == '\n');
  check_line(text, 21, "first.test");
  const auto second = text.find('\n', 21) + 1;
  check_line(text, second, "second.test");
  CHECK(text.find('\n', second) + 1 == text.size());
  CHECK(count.log_lines_lost == 2);
}

TEST_CASE("half a line that an earlier process left is ended too") {
  const test::temporary_directory directory;
  const auto file = directory.path() + "/decisions";
  std::ofstream(file) << "{\"time\":";
  counters count;
  {
    decision_log log(file, count);
    log.add(about("a.test"));
  }
  REQUIRE(content(file).starts_with("{\"time\":\n"));
  check_line(content(file), 9, "a.test");
}
