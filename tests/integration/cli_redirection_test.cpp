// What the caller redirects: the command reads or writes a stream, and has no right over the file behind it.
#include <sys/stat.h>
#include <unistd.h>

#include "cli_support.hpp"

using namespace ccbox::test;

namespace {

// A shell script of the caller's, in which $ccbox runs what follows it in an enclosure, and without which the
// same words run as they are.
finished script(const temporary_directory& work, const std::string& text, bool enclosed = true,
                const arguments& options = {}) {
  std::string prefix;
  for (const std::string& word : run_words + options + arguments{"--"})
    prefix += word + " ";
  run_options how = in(work);
  how.extra_env = {"ccbox=" + (enclosed ? prefix : "")};
  return run({"sh", "-c", text}, how);
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file that is read through standard input cannot be written") {
  // The file lies out of the writable directory, so that the descriptor is the only way.
  const temporary_directory work, elsewhere;
  for (const bool enclosed : {false, true}) {
    const auto file = elsewhere.write("file", "given\n");
    script(work, "$ccbox sh -c 'echo planted >/proc/self/fd/0' < " + file, enclosed);
    CHECK(read_file(file) == (enclosed ? "given\n" : "planted\n"));
  }
}

TEST_CASE("what a log held before can be neither cut, nor read, nor given another mode") {
  const temporary_directory work, elsewhere;
  for (const bool enclosed : {false, true}) {
    const auto log = elsewhere.write("log", "before\n");
    REQUIRE(::chmod(log.c_str(), 0600) == 0);
    script(work, "$ccbox sh -c ': >/proc/self/fd/1; chmod 666 /proc/self/fd/1; echo said' >> " + log,
           enclosed);
    CHECK(read_file(log) == (enclosed ? "before\nsaid\n" : "said\n"));
    CHECK(mode_of(log) == (enclosed ? 0600 : 0666));
  }
  const auto log = elsewhere.write("log", "secret\n");
  script(work, "$ccbox timeout 5 dd if=/proc/self/fd/1 of=taken iflag=nonblock 2>/dev/null >> " + log, false);
  CHECK(read_file(work / "taken") == "secret\n");
  script(work, "$ccbox timeout 5 dd if=/proc/self/fd/1 of=taken iflag=nonblock 2>/dev/null >> " + log);
  CHECK(read_file(work / "taken") == "");
}

TEST_CASE("what the command did not read is left to whoever shares the file") {
  const temporary_directory work;
  work.write("list", "one\ntwo\nthree\n");
  CHECK(script(work, "while read -r line; do $ccbox true; echo $line; done < list").out ==
        "one\ntwo\nthree\n");
  CHECK(script(work, "{ $ccbox dd bs=1 count=4 2>/dev/null; echo --; cat; } < list").out ==
        "one\n--\ntwo\nthree\n");
  CHECK(script(work, "{ read -r first; $ccbox cat; echo --; cat; } < list").out == "two\nthree\n--\n");
}

TEST_CASE("scripts, large files and both outputs in one file pass unchanged and in order") {
  const temporary_directory work;
  work.write("script", "echo a\nread -r next\nthe data of read\necho b $next\n");
  CHECK(script(work, "$ccbox bash < script").out == "a\nb the data of read\n");
  CHECK(script(work, "head -c 20000000 /dev/urandom > big; $ccbox cat < big > copy; cmp big copy").code == 0);
  script(work, "for i in 1 2 3; do $ccbox sh -c 'echo out; echo err >&2; echo out'; done > both 2>&1");
  CHECK(read_file(work / "both") == "out\nerr\nout\nout\nerr\nout\nout\nerr\nout\n");
  script(work, "$ccbox sh -c 'echo out; echo err >&2' > one 2> two");
  CHECK(read_file(work / "one") == "out\n");
  CHECK(read_file(work / "two") == "err\n");
  CHECK(script(work, "$ccbox sh -c 'cat; exit 7' < /dev/null > /dev/null").code == 7);
}

TEST_CASE("a named FIFO gives the command no right over it") {
  const temporary_directory work, elsewhere;
  const std::string fifo = elsewhere / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string number : {"0", "1", "2"}) {
    for (const bool enclosed : {false, true}) {
      CAPTURE(number);
      REQUIRE(::chmod(fifo.c_str(), 0600) == 0);
      // Both ends are open before, so that nobody waits for the other.
      script(work,
             "exec 9<>" + fifo + "; $ccbox chmod 666 /proc/self/fd/" + number + " " + number + "<>" + fifo,
             enclosed);
      CHECK(mode_of(fifo) == (enclosed ? 0600 : 0666));
    }
  }
  script(work,
         "exec 9<>" + fifo +
             "; echo given >&9; $ccbox sh -c 'read -r line </proc/self/fd/1; echo $line > read' >&9",
         false);
  CHECK(read_file(work / "read") == "given\n");
  script(
      work,
      "rm read; exec 9<>" + fifo +
          "; echo given >&9; $ccbox timeout 2 sh -c 'read -r line </proc/self/fd/1; echo $line > read' >&9");
  CHECK(read_file(work / "read") == "");
}

TEST_CASE("what passes through named FIFOs is whole and in order, and what was not read stays in them") {
  const temporary_directory work;
  const std::string setup = "mkfifo in out; ";
  CHECK(script(work, setup + "head -c 3000000 /dev/urandom > big; cat big > in & cat out > copy & "
                             "$ccbox cat < in > out; wait; cmp big copy")
            .code == 0);
  CHECK(script(work, "cat out & $ccbox sh -c 'echo out; echo err >&2; echo out' > out 2>&1; wait").out ==
        "out\nerr\nout\n");
  CHECK(script(work, "cat out & $ccbox echo appended >> out; wait").out == "appended\n");
  const std::string lines = "exec 9<>in; printf 'one\ntwo\nthree\n' >&9; ";
  CHECK(script(work, lines + "for i in 1 2 3; do read -r line; $ccbox true; echo $line; done <&9").out ==
        "one\ntwo\nthree\n");
  CHECK(script(work, lines + "$ccbox dd bs=1 count=4 2>/dev/null <&9; read -r line <&9; echo -- $line").out ==
        "one\n-- two\n");
  CHECK(script(work, lines + "$ccbox sh -c 'read -r a; read -r b; echo $b' <&9; read -r line <&9; echo $line")
            .out == "two\nthree\n");
  CHECK(script(work, "printf 'a\nb\n' > in & $ccbox sh -c 'cat; echo end' < in").out == "a\nb\nend\n");
}

TEST_CASE("a command that makes its end of a FIFO's pipe larger reads everything once") {
  const temporary_directory work;
  const std::string larger =
      "import fcntl, os, sys, time; fcntl.fcntl(0, 1031, 1 << 16); total = 0\n"
      "while (piece := os.read(0, 1000)): total += len(piece)\n"
      "print(total)";
  work.write("larger.py", larger);
  CHECK(script(work, "mkfifo in; head -c 100000 /dev/zero > in & $ccbox python3 larger.py < in").out ==
        "100000\n");
}

TEST_CASE("a FIFO whose reader has gone away ends the command as a pipe does") {
  const temporary_directory work;
  const auto gone = script(work, "mkfifo out; head -c 10 out >/dev/null & $ccbox yes > out; echo $?");
  CHECK(gone.out == "141\n");
  CHECK(gone.err == "");
}

TEST_CASE("a FIFO that nobody reads is waited for until a signal") {
  const temporary_directory work;
  const auto stalled = script(work,
                              "mkfifo out; exec 9<>out; "
                              "$ccbox sh -c 'head -c 100000 /dev/zero; touch written' > out & run=$!; "
                              "until test -e written; do sleep 0.05; done; kill -0 $run && echo waits; "
                              "kill $run; wait $run; echo $?");
  CHECK(stalled.out == "waits\n143\n");
  CHECK_FALSE(stalled.timed_out);
}

TEST_CASE("output that finds no room is an error and ends the command") {
  const temporary_directory work;
  const auto full = script(work, "$ccbox yes > /dev/full");
  CHECK(full.code == 125);
  CHECK(contains(full.err, "ccbox: error: write to standard output: No space left on device"));
  const auto errors = script(work, "$ccbox sh -c 'yes >&2' 2> /dev/full");
  CHECK(errors.code == 125);
}

TEST_CASE("a redirected output counts for the limit of file sizes") {
  const temporary_directory work;
  const auto limited = script(work, "$ccbox yes > big", true, {"--file-size", "64K"});
  CHECK(limited.code == 125);
  CHECK(contains(limited.err, "write to standard output: File too large (EFBIG)"));
  CHECK(contains(limited.err, "raise the limit of 65536 bytes (--file-size)"));
  CHECK(read_file(work / "big").size() == 65536);
}

TEST_CASE("the limit of file sizes is for what the command writes, and counts what was there") {
  const temporary_directory work;
  work.write("log", std::string(1000, 'x'));
  script(work, "$ccbox sh -c 'echo 12345678901234567890123456789' >> log", true, {"--file-size", "1024"});
  CHECK(read_file(work / "log").size() == 1024);
  // ccbox's own message goes to a file that is longer.
  work.write("messages", std::string(5000, 'x'));
  script(work, "$ccbox yes > big 2>> messages", true, {"--file-size", "1024"});
  CHECK(read_file(work / "big").size() == 1024);
  CHECK(contains(read_file(work / "messages"), "write to standard output: File too large"));
}

TEST_CASE("a position that input and output share is left where the output ends") {
  const temporary_directory work;
  work.write("both", "0123456789");
  script(work, "{ $ccbox sh -c 'head -c 200000 /dev/zero | tr \"\\0\" x'; printf TAIL; } 0<>both 1>&0");
  CHECK(read_file(work / "both").size() == 200004);
  CHECK(read_file(work / "both").ends_with("xTAIL"));
}

TEST_CASE("descriptors that are more than a stream and cannot be copied are refused with the reason") {
  const temporary_directory work;
  const std::string start = "python3 -c 'import os, subprocess, sys; fd = ";
  const std::string rest = "; sys.exit(subprocess.run(sys.argv[1:], stdin=fd).returncode)' $ccbox true";
  for (const auto* made : {"os.open(\"/etc/passwd\", os.O_PATH)", "os.pidfd_open(os.getpid())"}) {
    CAPTURE(made);
    const auto done = script(work, start + made + rest);
    CHECK(done.code == 125);
    CHECK(contains(done.err, "ccbox: error: descriptor 0 is neither a stream nor"));
  }
}

TEST_CASE("backend none hands redirected files over as they are") {
  const temporary_directory work;
  run_options how = in(work);
  how.extra_env = {"program=" + ccbox_program()};
  run({"sh", "-c",
       "\"$program\" run -q --backend none -- sh -c 'test -f /proc/self/fd/1 && echo file' > out"},
      how);
  CHECK(read_file(work / "out") == "file\n");
}
