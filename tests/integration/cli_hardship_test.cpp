// What the caller's circumstances can do to ccbox: full disks, low limits, an enclosure around it. It answers
// with an error that names the remedy, never with silence.
#include <fcntl.h>
#include <sys/resource.h>
#include <cerrno>

#include <string>

#include "cli_support.hpp"
#include "support/sanitizer.hpp"

using namespace ccbox::test;

namespace {

// ccbox with `words`, after `setup` in a shell.
finished after(const std::string& setup, const arguments& words, const temporary_directory& work) {
  return run(arguments{"/bin/sh", "-c", setup + "; exec \"$@\"", "sh"} + words, in(work));
}

// A sanitizer needs memory in every process, init too; and its check of virtual pointers opens a pipe to see
// what can be read, and takes a pipe that it did not get for an error of the program.
const std::string least_memory = sanitized ? "256M" : "4M", fewest_files = sanitized ? "16" : "6";

}  // namespace

TEST_CASE("an answer that does not fit on the disk is an error") {
  const temporary_directory work;
  for (const arguments& words : {arguments{"version"},
                                 {"--help"},
                                 {"run", "--help"},
                                 {"explain"},
                                 {"plugins", "--json"},
                                 {"check", "path", "x"},
                                 {"wrap", "true"}}) {
    CAPTURE(words[0]);
    const auto result = after("exec >/dev/full", arguments{ccbox_program()} + words, work);
    CHECK(result.code == 125);
    CHECK(contains(result.err, "ccbox: error: write to standard output: No space left on device (ENOSPC)"));
  }
}

TEST_CASE("an answer whose reader has gone away ends as by SIGPIPE, in silence") {
  const temporary_directory work;
  // The reader is the shell itself, which closes its end.
  const auto result = after("mkfifo gone; exec 4<>gone; exec >gone 4<&-", {ccbox_program(), "explain"}, work);
  CHECK(result.code == 141);
  CHECK(result.err == "");
}

TEST_CASE("events whose reader has gone away end the run as by SIGPIPE, in silence") {
  const temporary_directory work;
  for (const std::string command : {"true", "sleep 1000"}) {
    const auto result = after("mkfifo gone-" + command.substr(0, 4) + "; exec 4<>gone-" +
                                  command.substr(0, 4) + "; exec >gone-" + command.substr(0, 4) + " 4<&-",
                              run_words + arguments{"--json", "--", "sh", "-c", command}, work);
    CHECK(result.code == 141);
    CHECK(result.err == "");
  }
}

TEST_CASE("events that do not fit on the disk end the run with an error line") {
  const temporary_directory work;
  const auto result = after("exec >/dev/full", run_words + arguments{"--json", "--", "sleep", "1000"}, work);
  CHECK(result.code == 125);
  CHECK(contains(result.err, "ccbox: error: write to standard output: No space left on device (ENOSPC)"));
  CHECK(contains(result.err, "ccbox: hint: what was printed is incomplete"));
  const auto short_run = after("exec >/dev/full", run_words + arguments{"--json", "--", "true"}, work);
  CHECK(short_run.code == 125);
  CHECK(contains(short_run.err, "ENOSPC"));
}

TEST_CASE("limits of the caller that are too low are named") {
  const temporary_directory work;
  const auto no_files = after("ulimit -n 16", run_words + arguments{"--", "true"}, work);
  CHECK(no_files.code == 125);
  CHECK(contains(no_files.err, "EMFILE"));
  CHECK(contains(no_files.err, "ccbox: hint: raise the limit of open files"));
  const auto fewest = after("ulimit -n " + fewest_files, run_words + arguments{"--", "true"}, work);
  CHECK(fewest.code == 125);
  CHECK(contains(fewest.err, "ccbox: hint: raise the limit of open files"));
  const auto no_size = after(no_sanitizer_file + "ulimit -f 0", run_words + arguments{"--", "true"}, work);
  CHECK_FALSE(no_size.signalled);
  CHECK(no_size.code == 125);
  CHECK(contains(no_size.err, "EFBIG"));
  CHECK(contains(no_size.err, "ulimit -f"));
}

TEST_CASE("a memory limit that no program starts with is refused, and the least is enough for a small one") {
  const temporary_directory work;
  const auto limited = [&](const std::string& size) {
    return run(run_words + arguments{"--memory", size, "--", "/bin/true"}, in(work));
  };
  for (const std::string size : {"1", "64K", "3M"}) {
    const auto refused = limited(size);
    CHECK(refused.code == 125);
    CHECK(contains(refused.err, "--memory '" + size + "': must be from 4194304 to "));
    CHECK(contains(refused.err, "leave the option out"));
    CHECK(contains(refused.err, "no program starts with less"));
  }
  CHECK(limited(least_memory).code == 0);
}

TEST_CASE(
    "another sandbox does not start inside an enclosure, with name rules or without, and says so itself") {
  const temporary_directory work;
  for (const arguments& rules : {arguments{}, arguments{"--without", "fs_name_deny"}}) {
    const auto start = [&](const arguments& command) {
      return run(run_words + rules + arguments{"--"} + command, in(work));
    };
    for (const arguments& options : {arguments{}, arguments{"--unshare-user"}, arguments{"--unshare-all"}}) {
      const auto refused = start(arguments{"bwrap"} + options + arguments{"--ro-bind", "/", "/", "true"});
      CHECK(refused.code == 1);
      CHECK(contains(refused.err, "bwrap: "));
      CHECK(contains(refused.err, "namespace"));
    }
    const auto unshared = start({"unshare", "--user", "--map-root-user", "true"});
    CHECK(unshared.code == 1);
    CHECK(contains(unshared.err, "Operation not permitted"));
  }
}

TEST_CASE("a process inside gets no listener of its own where the broker has one, and EBUSY says why") {
  const temporary_directory work;
  const arguments command{"--ro",      CCBOX_TEST_BINARY_DIR "/bin",
                          "--bind",    ".",
                          "--",        CCBOX_TEST_BINARY_DIR "/bin/attempt",
                          "answering", "-1",
                          "0",         "--",
                          "/bin/true"};
  CHECK(run(run_words + command, in(work)).code == EBUSY);
  CHECK(run(run_words + arguments{"--without", "fs_name_deny"} + command, in(work)).code == 0);
}

TEST_CASE("inside an enclosure ccbox says that it is in one") {
  const temporary_directory work;
  const arguments outer =
      run_words + arguments{"--ro", CCBOX_TEST_SOURCE_DIR, "--ro", CCBOX_TEST_BINARY_DIR, "--bind", "."} +
      arguments{"--env", no_leak_search, "--"};
  const auto nested = run(outer + run_words + arguments{"--bind", ".", "--", "true"}, in(work));
  CHECK(nested.code == 125);
  CHECK(contains(nested.err, "inside an enclosure of ccbox already"));
  CHECK(contains(nested.err, "hint: this is inside an enclosure of ccbox already: run ccbox outside of it"));
  const auto doctor = run(outer + arguments{ccbox_program(), "doctor"}, in(work));
  CHECK(doctor.code == 1);
  CHECK(contains(doctor.out, "inside an enclosure of ccbox already"));
}

TEST_CASE("a failed launch is one error, not a log line besides") {
  const temporary_directory work;
  const auto result =
      run(run_words +
              arguments{"--plugins",
                        work.write("p.yaml", "plugins:\n  - path: " CCBOX_TEST_BINARY_DIR
                                             "/plugins/bubblewrap.so\n    options: {bwrap: /bin/false}\n"),
                        "--", "true"},
          in(work));
  CHECK(result.code == 125);
  CHECK(result.err.starts_with("ccbox: error: "));
  CHECK_FALSE(contains(result.err, "level="));
}

TEST_CASE("where no plugin could be loaded the reason is in the message") {
  const temporary_directory work;
  const std::string manifest = work.write("p.yaml", "plugins:\n  - path: " CCBOX_TEST_BINARY_DIR
                                                    "/plugins/bubblewrap.so\n    sha256: " +
                                                        std::string(64, '0') + "\n");
  const auto result = run(run_words + arguments{"--plugins", manifest, "--", "true"}, in(work));
  CHECK(result.code == 125);
  CHECK(contains(result.err, "no backend is available on this host: "));
  CHECK(contains(result.err, "sha256"));
}

TEST_CASE("run --json prints every refusal as a line of JSON") {
  const temporary_directory work;
  for (const arguments& words : {arguments{"--spec", "missing.json", "true"},
                                 {"--plugins", "missing.yaml", "true"},
                                 {"--pty", "perhaps", "true"},
                                 {""}}) {
    const auto result = run(run_words + arguments{"--json"} + words, in(work));
    CHECK(result.code == 125);
    CHECK(result.out.starts_with(R"({"type":"error","error":{"code":")"));
  }
}

TEST_CASE("a command that is not found or cannot be executed comes with a remedy") {
  const temporary_directory work;
  CHECK(contains(enclosed(work, {"no-such-program-here"}).err, "ccbox: hint: no directory of PATH"));
  CHECK(contains(enclosed(work, {"./missing"}).err, "ccbox: hint: it, or the interpreter"));
  CHECK(contains(enclosed(work, {"/usr"}).err, "ccbox: hint: it must be a file"));
}

TEST_CASE("a home that no file system would take is replaced") {
  const temporary_directory work;
  auto options = in(work);
  options.extra_env = {"HOME=/" + std::string(300, 'h')};
  const auto result = run(run_words + arguments{"--", "printenv", "HOME"}, options);
  CHECK(result.code == 0);
  CHECK(result.out == "/run/ccbox/home\n");
}
