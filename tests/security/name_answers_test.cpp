// Where no rule is concerned, the broker answers as the kernel does: the same errno, and the same file
// afterwards. And the ways round it that the filters close.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "support/enclosed_table.hpp"
#include "support/run_command.hpp"

using namespace ccbox::test;

namespace {

constexpr int makes_no_sense = 200;  // support/attempt/script.hpp

struct question {
  const char* setup;
  const char* action;
};

// With `look`, `flags` and `get` what comes of a call is observed, too.
const std::vector<question> questions = {
    // What a file is made as.
    {"", "open x O_CREAT|O_WRONLY 0644 ; look x"},
    {"", "open x O_CREAT|O_WRONLY 0777 ; look x"},
    {"", "open x O_CREAT|O_WRONLY 0 ; look x"},
    {"", "umask 077 ; open x O_CREAT|O_WRONLY 0666 ; look x"},
    {"",
     "umask 0 ; open x O_CREAT|O_WRONLY 0666 ; look x ; umask 027 ; open y O_CREAT|O_WRONLY 0666 ; look y"},
    {"", "umask 0 ; mkdir x 0777 ; look x ; umask 077 ; mkdir y 0777 ; look y"},
    {"", "umask 0 ; mkdir x 01777 ; look x"},
    {"", "umask 0 ; mknod x S_IFIFO|0666 0 ; look x ; mknod y S_IFREG|0644 0 ; look y"},
    {"", "umask 0 ; in-child open x O_CREAT|O_WRONLY 0666 ; look x"},
    {"mkdir d; chmod g+s d", "mkdir d/x 0755 ; look d/x ; open d/y O_CREAT|O_WRONLY 0644 ; look d/y"},
    {"", "f=open . O_TMPFILE|O_RDWR 0640 ; linkat AT /proc/self/fd/{f} AT x AT_SYMLINK_FOLLOW ; look x"},
    // What it is opened as.
    {"", "f=open x O_CREAT|O_WRONLY 0644 ; flags $f"},
    {"", "f=open x O_CREAT|O_WRONLY|O_CLOEXEC 0644 ; flags $f"},
    {"", "f=open x O_CREAT|O_RDWR|O_APPEND 0644 ; flags $f"},
    {"", "f=open x O_CREAT|O_RDWR|O_NONBLOCK|O_CLOEXEC 0644 ; flags $f"},
    {"", "f=open x O_CREAT|O_RDWR|O_SYNC 0644 ; flags $f"},
    {"", "f=open x O_CREAT|O_EXCL|O_RDWR|O_APPEND|O_CLOEXEC 0644 ; flags $f"},
    {"printf old >x", "f=open x O_WRONLY|O_APPEND ; put $f new ; look x"},
    {"printf old >x", "f=open x O_RDWR ; get $f ; put $f new ; look x"},
    {"printf old >x", "f=open x O_RDWR|O_TRUNC ; get $f ; look x"},
    {"printf old >x", "f=open x O_TRUNC ; look x"},
    {"printf old >x; chmod 400 x", "f=open x O_RDONLY ; get $f"},
    {"printf old >x",
     "f=open x O_RDONLY ; g=open /proc/self/fd/{f} O_WRONLY|O_APPEND ; flags $g ; put $g new ; look x"},
    {"printf old >x", "f=open x O_RDONLY ; open /proc/self/fd/{f} O_CREAT|O_EXCL|O_WRONLY 0644"},
    {"printf old >x", "f=open x O_RDONLY ; open /proc/self/fd/{f} O_NOFOLLOW|O_WRONLY"},
    {"", "open /dev/null O_WRONLY|O_CREAT|O_TRUNC 0644"},
    {"", "f=open /dev/null O_RDONLY ; open /dev/fd/{f} O_WRONLY"},
    {"", "open /proc/self/comm O_WRONLY"},
    {"",
     "open /dev/shm/x O_CREAT|O_WRONLY 0644 ; look /dev/shm/x ; rename /dev/shm/x /dev/shm/.env ; unlink "
     "/dev/shm/.env"},
    // What there is already.
    {"printf old >x", "open x O_CREAT|O_EXCL|O_WRONLY 0644"},
    {"ln -s y x", "open x O_CREAT|O_EXCL|O_WRONLY 0644"},
    {"ln -s y x", "open x O_CREAT|O_NOFOLLOW|O_WRONLY 0644"},
    {"mkdir x", "mkdir x 0755"},
    {"printf old >x", "mkdir x 0755"},
    {"ln -s y x", "mkdir x 0755"},
    {"printf old >x", "symlink y x"},
    {"printf old >x", "mknod x S_IFREG|0644 0"},
    {"printf a >x; printf b >y", "link x y"},
    {"printf a >x; printf b >y", "renameat2 AT x AT y RENAME_NOREPLACE"},
    {"printf a >x; printf b >y", "renameat2 AT x AT y RENAME_EXCHANGE|RENAME_NOREPLACE"},
    {"printf a >x", "renameat2 AT x AT y RENAME_EXCHANGE"},
    {"printf a >x; printf b >y", "renameat2 AT x AT y 0x80"},
    {"printf a >x; printf bc >y", "rename x y ; look x ; look y"},
    {"printf a >x; ln x y", "rename x y ; look x ; look y"},
    {"mkdir x y", "rename x y ; look x"},
    {"mkdir -p x y/z", "rename x y"},
    {"mkdir x; printf a >y", "rename x y"},
    {"mkdir x; printf a >y", "rename y x"},
    {"mkdir x", "rename x x/y"},
    {"mkdir -p x/y", "rename x/y x"},
    {"printf a >@", "rename nothing x"},
    {"printf a >@", "rename nothing @"},
    {"printf a >@", "renameat2 AT nothing AT @ RENAME_NOREPLACE"},
    {"printf a >@; printf b >x", "renameat2 AT nothing AT x RENAME_EXCHANGE"},
    // What there is not.
    {"", "open x O_WRONLY"},
    {"", "open x/y O_CREAT|O_WRONLY 0644"},
    {"printf a >x", "open x/y O_CREAT|O_WRONLY 0644"},
    {"printf a >x", "mkdir x/y 0755"},
    {"", "unlink x"},
    {"", "rmdir x"},
    {"mkdir x", "unlink x"},
    {"printf a >x", "rmdir x"},
    {"mkdir -p x/y", "rmdir x"},
    {"printf a >x", "unlinkat AT x AT_REMOVEDIR"},
    {"printf a >x", "unlinkat AT x 0x1"},
    {"", "truncate x 0"},
    {"mkdir x", "truncate x 0"},
    {"printf abc >x", "truncate x -1"},
    {"printf abc >x", "truncate x 2 ; look x ; truncate x 100 ; look x"},
    {"", "link x y"},
    {"mkdir x", "link x y"},
    {"printf a >x", "linkat AT x AT y 0x1"},
    {"mkdir x", "open x O_WRONLY"},
    {"mkdir x", "open x O_CREAT|O_WRONLY 0644"},
    {"", "open . O_WRONLY"},
    {"", "open . O_CREAT 0644"},
    {"ln -s x x", "open x O_CREAT|O_WRONLY 0644"},
    {"ln -s y x; ln -s x y", "open x/z O_CREAT|O_WRONLY 0644"},
    {"ln -s l41 l42; i=41; while [ $i -gt 0 ]; do ln -s l$((i-1)) l$i; i=$((i-1)); done",
     "open l42 O_CREAT|O_WRONLY 0644"},
    // Odd names.
    {"", "open zero:1 O_CREAT|O_WRONLY 0644"},
    {"", "mkdir zero:1 0755"},
    {"", "open x/ O_CREAT|O_WRONLY 0644"},
    {"mkdir x", "open x/ O_CREAT|O_WRONLY 0644"},
    {"printf a >x", "open x/ O_WRONLY"},
    {"", "mkdir x/// 0755 ; look x"},
    {"", "mknod x/ S_IFREG|0644 0"},
    {"", "symlink y x/"},
    {"", "symlink zero:1 x"},
    {"printf a >x", "link x y/"},
    {"printf a >x", "unlink x/"},
    {"printf a >x", "rename x y/"},
    {"printf a >x", "rename x/ y"},
    {"mkdir x", "rename x/ y/ ; look y"},
    {"", "mkdir . 0755"},
    {"", "mkdir .. 0755"},
    {"", "mkdir / 0755"},
    {"", "rmdir ."},
    {"mkdir x", "rmdir x/."},
    {"mkdir x", "rmdir x/.."},
    {"", "rmdir /"},
    {"", "unlink .."},
    {"mkdir x", "rename x/. y"},
    {"mkdir x", "rename x y/.."},
    {"", "rename . y"},
    {"", "open long:255 O_CREAT|O_WRONLY 0644"},
    {"", "open long:256 O_CREAT|O_WRONLY 0644"},
    {"", "mkdir long:256 0755"},
    {"", "rename long:256 x"},
    {"", "open deep:4090/x O_CREAT|O_WRONLY 0644 ; look x"},
    {"", "open deep:4094/x O_CREAT|O_WRONLY 0644 ; look x"},
    {"", "open deep:4096/x O_CREAT|O_WRONLY 0644"},
    {"", "mkdir deep:5000/x 0755"},
    {"", "symlink long:4095 x ; look x"},
    {"", "symlink long:4096 x"},
    {"", "open \\xff\\x0a\\x01 O_CREAT|O_WRONLY 0644 ; look \\xff\\x0a\\x01"},
    // Memory that is not there.
    {"", "open bad O_CREAT|O_WRONLY 0644"},
    {"", "openat AT 0 O_CREAT|O_WRONLY 0644"},
    {"", "open 0xffffffffffff0000 O_CREAT|O_WRONLY 0644"},
    {"", "open cut:abc O_CREAT|O_WRONLY 0644"},
    {"", "open edge:abc O_CREAT|O_WRONLY 0644 ; look abc"},
    {"", "mkdir bad 0755"},
    {"", "mkdir cut:x 0755"},
    {"", "rename bad x"},
    {"printf a >x", "rename x bad"},
    {"printf a >x", "rename x cut:y"},
    {"", "symlink bad x"},
    {"", "symlink x bad"},
    {"printf a >x", "link x bad"},
    {"", "unlink bad"},
    {"", "truncate bad 0"},
    // Descriptors that are none, or no directory's.
    {"", "openat 999 x O_CREAT|O_WRONLY 0644"},
    {"", "openat -1 x O_CREAT|O_WRONLY 0644"},
    {"printf a >f", "f=open f O_RDONLY ; openat $f x O_CREAT|O_WRONLY 0644"},
    {"printf a >f", "f=open f O_RDONLY ; mkdirat $f x 0755"},
    {"", "mkdirat 999 x 0755"},
    {"", "unlinkat 999 x 0"},
    {"printf a >x", "renameat AT x 999 y"},
    {"printf a >x", "linkat 999 x AT y 0"},
    {"", "linkat 999 zero:1 AT y AT_EMPTY_PATH"},
    {"", "open /proc/self/fd/999 O_WRONLY"},
    {"", "f=open . O_PATH ; close $f ; openat $f x O_CREAT|O_WRONLY 0644"},
    {"mkdir d", "d=open d O_PATH ; rmdir d ; openat $d x O_CREAT|O_WRONLY 0644"},
    {"mkdir d", "chdir d ; rmdir ../d ; open x O_CREAT|O_WRONLY 0644"},
    {"printf a >f", "f=open f O_RDONLY ; openat $f x O_CREAT|O_WRONLY 0644"},
    {"printf a >f", "f=open f O_RDONLY ; openat $f .env O_CREAT|O_WRONLY 0644"},
    {"printf a >f", "f=open f O_PATH ; mkdirat $f .env 0755"},
    {"printf a >f; printf b >x", "f=open f O_RDONLY ; renameat AT x $f .env"},
    {"printf a >f", "f=open f O_RDONLY ; unlinkat $f .env 0"},
    {"printf a >f", "f=open f O_RDONLY ; symlinkat x $f .env"},
    // Nobody else may look into it.
    {"mkdir d", "d=open d O_RDONLY ; prctl PR_SET_DUMPABLE 0 ; openat $d x O_CREAT|O_WRONLY 0644 ; look d/x"},
    {"mkdir d", "d=open d O_PATH ; prctl PR_SET_DUMPABLE 0 ; mkdirat $d x 0755 ; look d/x"},
    {"printf a >x",
     "f=open x O_RDONLY ; prctl PR_SET_DUMPABLE 0 ; g=open /proc/self/fd/{f} O_WRONLY ; put $g new"},
    {"", "prctl PR_SET_DUMPABLE 0 ; openat 999 x O_CREAT|O_WRONLY 0644"},
    // Flags that make no sense.
    {"", "open x O_TMPFILE|O_RDONLY 0644"},
    {"printf a >x", "open x O_TMPFILE|O_WRONLY 0644"},
    {"", "open nothing O_TMPFILE|O_WRONLY 0644"},
    {"", "open x O_CREAT|O_DIRECTORY|O_WRONLY 0644"},
    {"printf a >x", "open x O_DIRECTORY|O_WRONLY"},
    {"printf a >x", "open x O_PATH|O_CREAT|O_TRUNC|O_WRONLY 0644 ; look x"},
    {"", "mknod x S_IFDIR|0755 0"},
    {"", "mknod x 0170644 0"},
};

// Compared with no enclosure at all: without a broker there is no openat2 for root.
const std::vector<question> questions_with_openat2 = {
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,0640,0 24 ; look x"},
    {"", "f=openat2 AT x how:O_CREAT|O_RDWR|O_APPEND|O_CLOEXEC,0644,RESOLVE_BENEATH 24 ; flags $f"},
    {"", "openat2 AT ../x how:O_CREAT|O_WRONLY,0644,RESOLVE_BENEATH 24"},
    {"", "openat2 AT %/x how:O_CREAT|O_WRONLY,0644,RESOLVE_BENEATH 24"},
    {"ln -s %/y x", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_BENEATH 24"},
    {"ln -s ../y x", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_BENEATH 24"},
    {"ln -s y x", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_BENEATH 24 ; look y"},
    {"ln -s /y x", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_IN_ROOT 24 ; look y"},
    {"ln -s y x", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_NO_SYMLINKS 24 ; look y"},
    {"printf a >y; ln -s y x", "openat2 AT x how:O_WRONLY,0,RESOLVE_NO_SYMLINKS 24"},
    {"mkdir d; ln -s d l", "openat2 AT l/x how:O_CREAT|O_WRONLY,0644,RESOLVE_NO_SYMLINKS 24"},
    {"printf a >x",
     "f=open x O_RDONLY ; openat2 AT /proc/self/fd/{f} how:O_WRONLY,0,RESOLVE_NO_MAGICLINKS 24"},
    {"", "openat2 AT /proc/self/cwd/x how:O_CREAT|O_WRONLY,0644,RESOLVE_NO_MAGICLINKS 24"},
    {"", "openat2 AT /dev/null how:O_WRONLY,0,RESOLVE_NO_XDEV 24"},
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_CACHED 24"},
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,0644,0x100 24"},
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,0644,RESOLVE_BENEATH|RESOLVE_IN_ROOT 24"},
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,010644,0 24"},
    {"", "openat2 AT x how:O_WRONLY,0644,0 24"},
    {"", "openat2 AT x how:0x40000001,0,0 24"},
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,0644,0 16"},
    {"", "openat2 AT x how:O_CREAT|O_WRONLY,0644,0 5000"},
    {"", "openat2 AT x bad 24"},
    {"", "openat2 AT bad how:O_CREAT|O_WRONLY,0644,0 24"},
};

struct closed_way {
  const char* action;
  int refused;
};

const std::vector<closed_way> closed_ways = {
    {"425 8 zero:120", EPERM},     // io_uring_setup
    {"426 0 0 0 0 0 0", EPERM},    // io_uring_enter
    {"427 0 0 0 0", EPERM},        // io_uring_register
    {"304 AT zero:128 0", EPERM},  // open_by_handle_at
    {"444 0 0 1", EOPNOTSUPP},     // landlock_create_ruleset
    {"445 0 0 0 0", EOPNOTSUPP},   // landlock_add_rule
    {"446 0 0", EOPNOTSUPP},       // landlock_restrict_self
    {"s=socket AF_UNIX SOCK_STREAM 0 ; bind $s un:.env 110", EPERM},
    {"s=socket AF_UNIX SOCK_DGRAM 0 ; bind $s un:.env 110", EPERM},
    {"chroot .", EPERM},
    {"165 . . zero:1 4096 0", EPERM},                   // mount
    {"428 AT . 1", EPERM},                              // open_tree
    {"0x40000002 .env O_CREAT|O_WRONLY 0644", ENOSYS},  // x32: open
    {"0x40000101 AT .env O_CREAT|O_WRONLY 0644", ENOSYS},
    {"0x40000053 .env 0755", ENOSYS},  // x32: mkdir
};

void have_the_same_answer(const std::vector<table_row>& rows, const std::vector<std::string>& there) {
  const enclosed_table with(rows, {}), without(rows, there);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].setup);
    CAPTURE(rows[i].action);
    CHECK(without[i].error != makes_no_sense);
    CHECK(with[i].error == without[i].error);
    CHECK(with[i].observed == without[i].observed);
  }
}

}  // namespace

TEST_CASE("calls that no rule is about end as they do without a broker, errno and file and all") {
  std::vector<table_row> rows;
  for (const auto& each : questions)
    rows.push_back({each.setup, each.action});
  have_the_same_answer(rows, without_names);
}

TEST_CASE("openat2 ends as it does outside of any enclosure, for root too") {
  std::vector<table_row> rows;
  for (const auto& each : questions_with_openat2)
    rows.push_back({each.setup, each.action});
  have_the_same_answer(rows, {"--backend", "none"});
}

TEST_CASE("openat2 makes no file set-user-id where it stays, and is there without name rules but for root") {
  const enclosed_table with({{"", "openat2 AT x how:O_CREAT|O_WRONLY,04755,0 24"},
                             {"", "openat2 AT . how:O_TMPFILE|O_WRONLY,04755,0 24"}},
                            {});
  CHECK(with[0].error == EPERM);
  CHECK(with.holds(0, "!x"));
  CHECK(with[1].error == EPERM);
  const enclosed_table without({{"", "openat2 AT x how:O_CREAT|O_WRONLY,0755,0 24"}}, without_names);
  CHECK(without[0].error == (::geteuid() == 0 ? ENOSYS : 0));
}

TEST_CASE("ways that lead past the broker are closed") {
  std::vector<table_row> rows;
  for (const auto& each : closed_ways)
    rows.push_back({"", each.action});
  const enclosed_table inside(rows, {});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].action);
    CHECK(inside[i].error == closed_ways[i].refused);
    CHECK(inside.holds(i, "!.env"));
  }
}

TEST_CASE("a file for which the caller has no descriptor left is not made, and what was there stays") {
  const temporary_directory work;
  work.write("old", "old");
  const std::string script = R"(
import errno, os, resource
os.mkdir('r'); os.mkdir('r/.git')
spare = [os.dup(1) for _ in range(8)]
resource.setrlimit(resource.RLIMIT_NOFILE, (spare[-1] + 1, spare[-1] + 1))
def refused(path, flags):
  try:
    os.open(path, flags, 0o600)
  except OSError as e:
    assert e.errno == errno.EMFILE, e
    return
  raise SystemExit('not refused: ' + path)
for flags in os.O_CREAT | os.O_WRONLY, os.O_CREAT | os.O_EXCL | os.O_RDWR, os.O_CREAT | os.O_TRUNC | os.O_WRONLY:
  refused('new', flags)
  refused('r/.git/config', flags)
  assert not os.path.exists('new') and not os.path.exists('r/.git/config')
refused('old', os.O_CREAT | os.O_WRONLY)
refused('.', os.O_TMPFILE | os.O_WRONLY)
assert os.path.getsize('old') == 3
os.close(spare[0])
os.close(os.open('new', os.O_CREAT | os.O_WRONLY, 0o600))
)";
  const auto result = run(run_attempts(work.path(), {}, {"python3", "-c", script}));
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(exists(work / "new"));
}

TEST_CASE("a directory of the host that is handed in as standard input cannot be written to") {
  const temporary_directory work, outside;
  auto words =
      run_attempts(work.path(), {}, {attempt_program, "script", "openat 0 made O_CREAT|O_WRONLY 0644"});
  std::vector<std::string> with_input{"/bin/sh", "-c", "d=$1; shift; exec \"$@\" <\"$d\"", "sh",
                                      outside.path()};
  with_input.insert(with_input.end(), words.begin(), words.end());
  CHECK(run(with_input).code != 0);
  CHECK_FALSE(exists(outside / "made"));
}
