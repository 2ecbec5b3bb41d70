// The broker as a process: what it leaves open, and what becomes of an enclosure that has lost it.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "support/enclosed_table.hpp"
#include "support/run_command.hpp"
#include "support/waiting.hpp"

using namespace ccbox::test;

namespace {

namespace fs = std::filesystem;

// The only child of `ccbox run` is the broker.
pid_t broker_of(pid_t ccbox) {
  for (const pid_t child : children_of(ccbox))
    if (read_file("/proc/" + std::to_string(child) + "/comm") == "ccbox-broker\n") return child;
  return -1;
}

std::string field(pid_t process, const std::string& name) {
  const auto status = read_file("/proc/" + std::to_string(process) + "/status");
  const auto at = status.find(name + ":");
  return at == std::string::npos ? "" : status.substr(at, status.find('\n', at) - at);
}

// Of a process that cannot be looked into only root may count them; everybody sees how large its table has
// become.
std::string descriptors_of(pid_t process) {
  auto text = field(process, "FDSize");
  if (::geteuid() == 0) {
    const fs::directory_iterator all("/proc/" + std::to_string(process) + "/fd");
    text += " open: " + std::to_string(std::distance(fs::begin(all), fs::end(all)));
  }
  return text;
}

}  // namespace

TEST_CASE("5,000 opens and 5,000 refusals leave the broker with the descriptors that it had") {
  std::string after_one;
  for (const char* times : {"1", "5000"}) {
    const temporary_directory work;
    make_gate(work);
    auto enclosure = running::start(run_attempts(work.path(), {}, {attempt_program, "storm", times}));
    REQUIRE(enclosure.wait_for("ready\n", milliseconds(120000)));
    const auto broker = broker_of(enclosure.pid());
    REQUIRE(broker > 0);
    const auto now = descriptors_of(broker);
    if (after_one.empty()) after_one = now;
    CHECK(now == after_one);
    CHECK(field(broker, "Threads") == "Threads:\t3");
    open_gate(work);
    CHECK(enclosure.wait().code == 0);
    CHECK_FALSE(exists(work / ".env"));
  }
}

TEST_CASE(
    "a broker that is killed at any moment leaves an enclosure in which nothing can be made, and then none") {
  std::mt19937 random(4);
  constexpr int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    const temporary_directory work;
    run_options how;
    how.limit = milliseconds(60000);
    auto enclosure =
        running::start(run_attempts(work.path(), {}, {attempt_program, "storm-until-failure"}), how);
    REQUIRE(enclosure.wait_for("begun\n"));
    const auto broker = broker_of(enclosure.pid());
    REQUIRE(broker > 0);
    const auto tree = open_process_tree(enclosure.pid());
    // A different moment of the storm each time, without a clock.
    for (auto looks = random() % 400; looks > 0; --looks)
      (void)exists(work / "ordinary");
    REQUIRE(::kill(broker, SIGKILL) == 0);
    const auto end = enclosure.wait();
    CAPTURE(end.out);
    CAPTURE(end.err);
    CHECK_FALSE(end.timed_out);
    CHECK(end.code != 0);
    for (const auto& process : tree)
      CHECK(wait_until_ended(process.get()));
    CHECK_FALSE(exists(work / ".env"));
    CHECK_FALSE(exists(work / "another"));
    // If anything of it still ran: every call that the broker would have answered has failed.
    if (const auto at = end.out.find("failed "); at != std::string::npos)
      CHECK(end.out.substr(at) == "failed 38 then 38 38\n");
    // At most the file that it was just about to remove.
    for (const auto& left : fs::directory_iterator(work.path()))
      CHECK(left.path().filename() == "ordinary");
  }
}
