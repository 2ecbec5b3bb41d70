// Signals to ccbox, and what is left when it is killed: nothing.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>

#include "cli_support.hpp"
#include "support/sanitizer.hpp"
#include "support/waiting.hpp"

using namespace ccbox::test;

namespace {

constexpr const char* trapping =
    "trap 'echo trapped; exit 0' TERM INT HUP; echo ready; while :; do sleep 0.01; done";

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Cgroups of this program's sessions, anywhere in the hierarchies.
std::vector<std::string> session_cgroups(pid_t pid) {
  std::vector<std::string> found;
  std::error_code ec;
  const std::string prefix = "ccbox-" + std::to_string(pid) + "-";
  for (std::filesystem::recursive_directory_iterator entry("/sys/fs/cgroup", ec), end; entry != end;
       entry.increment(ec)) {
    if (ec) break;
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path().string());
  }
  return found;
}

std::size_t lines_with(const std::string& file, const std::string& part) {
  const std::string text = read_file(file);
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// While it lives, whatever outlives its parents becomes a child of this process.
class orphanage {
 public:
  orphanage() { REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0); }
  ~orphanage() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  orphanage(const orphanage&) = delete;
  orphanage& operator=(const orphanage&) = delete;

  // Reaps those that have ended; true when there was no child but those of earlier tests.
  bool empties() const {
    bool empty = true;
    for (const pid_t pid : children_of(::getpid())) {
      if (std::find(before_.begin(), before_.end(), pid) != before_.end()) continue;
      empty = false;  // one that is reaped here may have left more
      ::waitpid(pid, nullptr, WNOHANG);
    }
    return empty;
  }

 private:
  std::vector<pid_t> before_ = children_of(::getpid());
};

}  // namespace

TEST_CASE("a signal reaches the command, and ccbox answers 128 and the signal whatever the command answers") {
  const temporary_directory work;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    auto command = running::start(run_words + arguments{"--", "sh", "-c", trapping}, in(work));
    REQUIRE(command.wait_for("ready"));
    command.signal(number);
    const auto result = command.wait();
    CHECK(contains(result.out, "trapped"));
    CHECK(result.code == 128 + number);
    CHECK_FALSE(result.signalled);
  }
}

TEST_CASE("a signal reaches the whole process group of the command") {
  const temporary_directory work;
  // The outer shell runs its trap when the inner one has ended.
  const std::string script =
      "trap 'echo outer; exit' TERM; "
      "sh -c 'trap \"echo inner; exit\" TERM; echo ready; while :; do sleep 0.01; done'";
  auto command = running::start(run_words + arguments{"--", "sh", "-c", script}, in(work));
  REQUIRE(command.wait_for("ready"));
  command.signal(SIGTERM);
  const auto result = command.wait();
  CHECK(contains(result.out, "inner"));
  CHECK(contains(result.out, "outer"));
}

TEST_CASE("a command that ignores the signal is killed after the grace") {
  const temporary_directory work;
  const auto begun = std::chrono::steady_clock::now();
  auto command = running::start(
      run_words + arguments{"--", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"},
      in(work));
  REQUIRE(command.wait_for("ready"));
  command.signal(SIGTERM);
  const auto result = command.wait();
  CHECK(result.code == 143);
  CHECK(std::chrono::steady_clock::now() - begun >= milliseconds(1900));
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("a second signal kills at once") {
  const temporary_directory work;
  auto command =
      running::start(run_words + arguments{"--", "sh", "-c",
                                           "trap 'echo first' INT; echo ready; while :; do sleep 0.01; done"},
                     in(work));
  REQUIRE(command.wait_for("ready"));
  const auto begun = std::chrono::steady_clock::now();
  command.signal(SIGINT);
  REQUIRE(command.wait_for("first"));
  command.signal(SIGINT);
  CHECK(command.wait().code == 130);
  CHECK(std::chrono::steady_clock::now() - begun < milliseconds(1900));
}

TEST_CASE("a reader that takes nothing holds up neither a signal nor the wall time") {
  const temporary_directory work;
  run_options how = in(work);
  how.extra_env = {"ccbox=" + ccbox_program() + " run --without fs_name_deny"};
  // The reader opens the FIFO and looks away.
  const auto stalled = [&](const std::string& text) {
    return run({"bash", "-c", "rm -f fifo ready; mkfifo fifo; exec 9<>fifo; " + text}, how);
  };
  const std::string start =
      "$ccbox $options -- sh -c 'head -c 100000 /dev/zero; touch ready; exec yes' > fifo 2> messages & ";
  const std::string full = "until test -e ready; do sleep 0.05; done; ";
  for (const std::string options : {"--json", "--json --timeout 1000"}) {
    CAPTURE(options);
    const auto signalled =
        stalled("options='" + options + "'; " + start + full + "kill $!; wait $!; echo $?");
    CHECK(signalled.out == "143\n");
    CHECK_FALSE(signalled.timed_out);
    CHECK(contains(read_file(work / "messages"), "error: standard output took nothing any more"));
  }
  // Without a signal; the messages find no room either.
  for (const std::string options : {"--json", "--quiet"}) {
    CAPTURE(options);
    const auto limited = stalled("$ccbox " + options + " --timeout 1 -- yes > fifo 2>&1; echo $?");
    CHECK(limited.out == "137\n");
    CHECK_FALSE(limited.timed_out);
  }
}

TEST_CASE("the enclosure has ended before a reader that takes nothing is given up") {
  const temporary_directory work;
  run_options how = in(work);
  how.extra_env = {"ccbox=" + ccbox_program() + " run --without fs_name_deny --json --timeout 1"};
  const auto result =
      run({"bash", "-c",
           "mkfifo fifo; exec 9<>fifo; $ccbox -- sh -c 'exec 8>lock; flock 8; touch ready; exec yes' > fifo "
           "& run=$!; "
           "until test -e ready; do sleep 0.05; done; flock lock echo ended; kill -0 $run && echo waiting; "
           "cat <&9 > events & reader=$!; until grep -q '\"killed\"' events; do sleep 0.05; done; "
           "wait $run; echo $?; kill $reader"},
          how);
  // Whoever goes on reading in time gets everything.
  CHECK(result.out == "ended\nwaiting\n137\n");
}

TEST_CASE("a reader that is slow gets all of a run that nobody ends") {
  const temporary_directory work;
  run_options how = in(work);
  how.extra_env = {"ccbox=" + ccbox_program() + " run --without fs_name_deny --json"};
  const auto result =
      run({"bash", "-c",
           "$ccbox -- head -c 300000 /dev/zero | { read -r handle; sleep 4; cat; } | grep -c '\"exit\"'; "
           "echo ${PIPESTATUS[0]}"},
          how);
  CHECK(result.out == "1\n0\n");
}

TEST_CASE("SIGINT to ccbox alone ends an ordinary command at once") {
  const temporary_directory work;
  auto command =
      running::start(run_words + arguments{"--", "sh", "-c", "echo ready; exec sleep 1000"}, in(work));
  REQUIRE(command.wait_for("ready"));
  command.signal(SIGINT);
  const auto result = command.wait();
  CHECK(result.code == 130);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("SIGUSR1 is the command's business") {
  const temporary_directory work;
  auto command = running::start(
      run_words + arguments{"--", "bash", "-c",
                            "trap 'echo usr1; exit 4' USR1; echo ready; while :; do sleep 0.01; done"},
      in(work));
  REQUIRE(command.wait_for("ready"));
  command.signal(SIGUSR1);
  const auto result = command.wait();
  CHECK(contains(result.out, "usr1"));
  CHECK(result.code == 4);
}

TEST_CASE("a signal at any moment of the launch ends ccbox with its code and leaves nothing") {
  const temporary_directory work;
  const orphanage orphans;
  std::minstd_rand random(7);
  for (int round = 0; round < 20; ++round) {
    auto command = running::start(run_words + arguments{"--", "sleep", "1000"}, in(work));
    ::usleep(static_cast<useconds_t>(random() % 40000));
    command.signal(SIGTERM);
    const auto result = command.wait();
    CHECK(result.code == 143);
    CHECK_FALSE(result.timed_out);
  }
  CHECK(eventually([&] { return orphans.empties(); }));
}

TEST_CASE("kill -9 of ccbox at any moment leaves no process, file, socket or mount") {
  const temporary_directory work, temporary;
  const orphanage orphans;
  const auto mounts = read_file("/proc/self/mounts");
  const auto sockets = lines_with("/proc/net/unix", "ccbox");
  const auto run_files = names_in("/run");
  run_options options = in(work);
  options.extra_env = {"TMPDIR=" + temporary.path()};
  std::minstd_rand random(42);
  for (int round = 0; round < 40; ++round) {
    auto command = running::start(
        run_words + arguments{"--processes", "50", "--", "sh", "-c", "sleep 1000 & sleep 1000"}, options);
    const pid_t pid = command.pid();
    ::usleep(static_cast<useconds_t>(random() % 60000));
    ::kill(pid, SIGKILL);
    CHECK(command.wait().code == 137);
  }
  CHECK(eventually([&] { return orphans.empties(); }));
  CHECK(names_in(work.path()).empty());
  auto left = names_in(temporary.path());
  std::erase_if(left, [](const std::string& name) { return contains(name, sanitizer_file); });
  CHECK(left.empty());
  CHECK(names_in("/run") == run_files);
  CHECK(read_file("/proc/self/mounts") == mounts);
  CHECK(lines_with("/proc/net/unix", "ccbox") == sockets);
}

TEST_CASE("the cgroup of a run that was killed is swept by the next one") {
  const temporary_directory work;
  const arguments limited = run_words + arguments{"--processes", "50", "--memory", "512M", "--"};
  auto command = running::start(limited + arguments{"sh", "-c", "echo ready; sleep 1000"}, in(work));
  REQUIRE(command.wait_for("ready"));
  const pid_t killed = command.pid();
  ::kill(killed, SIGKILL);
  command.wait();
  CHECK(eventually([&] {
    REQUIRE(run(limited + arguments{"true"}, in(work)).code == 0);
    return session_cgroups(killed).empty();
  }));
}
