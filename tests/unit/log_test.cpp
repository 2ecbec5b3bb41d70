#include "log.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>

#include "unique_fd.hpp"

using namespace ccbox;

namespace {

// What `body` writes to standard error.
std::string captured(const std::function<void()>& body) {
  const unique_fd file(::memfd_create("log", MFD_CLOEXEC));
  const unique_fd before(::dup(STDERR_FILENO));
  REQUIRE(file);
  REQUIRE(before);
  ::dup2(file.get(), STDERR_FILENO);
  body();
  ::dup2(before.get(), STDERR_FILENO);
  std::string text(65536, '\0');
  const auto count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return text;
}

struct level_guard {
  ~level_guard() { set_log_level(log_level::info); }
};

}  // namespace

TEST_CASE("an event is one line of key=value, with plain words and numbers as they are") {
  const auto line = captured([] {
    log_event(log_level::info, "launch",
              {{"session", "s1"}, {"took_ms", 4}, {"backend", std::string("bubblewrap")}});
  });
  CHECK(line == "level=info event=launch session=s1 took_ms=4 backend=bubblewrap\n");
}

TEST_CASE("a value that is no plain word is quoted, and cannot break the line or fake another key") {
  const auto line = captured([] {
    log_event(log_level::warn, "refused",
              {{"what", "no such\nlevel=error event=x"}, {"empty", ""}, {"eq", "a=b"}});
  });
  CHECK(line == "level=warn event=refused what='no such\\nlevel=error event=x' empty='' eq='a=b'\n");
}

TEST_CASE("events below the level are dropped") {
  const level_guard restore;
  const auto all = [] {
    log_event(log_level::debug, "d");
    log_event(log_level::info, "i");
    log_event(log_level::warn, "w");
    log_event(log_level::error, "e");
  };
  CHECK(captured(all) == "level=info event=i\nlevel=warn event=w\nlevel=error event=e\n");
  set_log_level(log_level::error);
  CHECK(captured(all) == "level=error event=e\n");
  CHECK(set_log_level("debug"));
  CHECK(captured(all).starts_with("level=debug event=d\n"));
  CHECK(set_log_level("off"));
  CHECK(captured(all).empty());
  CHECK_FALSE(set_log_level("verbose"));
}

TEST_CASE("a finished line is written as it is, on one line") {
  CHECK(captured([] { log_line(log_level::info, "agent sandbox ON (bubblewrap, it's here)"); }) ==
        "agent sandbox ON (bubblewrap, it's here)\n");
  CHECK(captured([] { log_line(log_level::info, "{a}\nb\x1b[0m"); }) == "{a}\\nb\\x1b[0m\n");
}
