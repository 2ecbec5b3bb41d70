#include "plugins/violations/refused_line.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace ccbox::violations;

namespace {

struct known_line {
  std::string_view line, action, target, program;
  bool is_path = true;
};

void expect(const known_line& known) {
  CAPTURE(known.line);
  const auto read = read_refused_line(known.line);
  REQUIRE(read);
  CHECK(read->action == known.action);
  CHECK(read->target == known.target);
  CHECK(read->program == known.program);
  CHECK(read->is_path == known.is_path);
}

}  // namespace

TEST_CASE("shells and coreutils say what was refused and to which path") {
  for (const known_line& known : std::vector<known_line>{
           {"sh: 1: cannot create /etc/x: Permission denied", "file-write-create", "/etc/x", "sh"},
           {"t.sh: 3: cannot open /root/x: Permission denied", "file-read-data", "/root/x", "t.sh"},
           {"bash: x: Operation not permitted", "file*", "x", "bash"},
           {"bash: line 1: /etc/x: Permission denied", "file*", "/etc/x", "bash"},
           {"/bin/sh: 1: ./run: Permission denied", "file*", "./run", "sh"},
           {"bash: cd: /root: Permission denied", "file*", "/root", "bash"},
           {"zsh: permission denied: ./run", "file*", "./run", "zsh"},
           {"cat: /home/me/.netrc: Permission denied", "file-read-data", "/home/me/.netrc", "cat"},
           {"cp: cannot open 'x y' for reading: Permission denied", "file-read-data", "x y", "cp"},
           {"cp: cannot create regular file '/etc/x': Permission denied", "file-write-create", "/etc/x",
            "cp"},
           {"mv: cannot move 'a' to 'b/.env': Permission denied", "file-write-create", "b/.env", "mv"},
           {"rm: cannot remove 'x': Operation not permitted", "file-write-unlink", "x", "rm"},
           {"mkdir: cannot create directory \xe2\x80\x98/x\xe2\x80\x99: Permission denied",
            "file-write-create", "/x", "mkdir"},
           {"ln: failed to create symbolic link 'x': Permission denied", "file-write-create", "x", "ln"},
           {"touch: cannot touch '/x': Permission denied", "file-write-create", "/x", "touch"},
           {"chmod: changing permissions of 'x': Operation not permitted", "file-write-mode", "x", "chmod"},
           {"chown: changing ownership of '/a b': Operation not permitted", "file-write-owner", "/a b",
            "chown"},
           {"ls: cannot open directory '/root': Permission denied", "file-read-data", "/root", "ls"},
           {"ls: cannot access '/root/x': Permission denied", "file-read-metadata", "/root/x", "ls"},
           {"grep: /root: Permission denied", "file-read-data", "/root", "grep"},
           {"find: \xe2\x80\x98/root\xe2\x80\x99: Permission denied", "file-read-data", "/root", "find"},
           {"tar: a/b: Cannot open: Permission denied", "file-read-data", "a/b", "tar"},
           {"tar: d: Cannot mkdir: Permission denied", "file-write-create", "d", "tar"},
           {"make: *** [Makefile:2: x] /x: Permission denied", "file*", "/x", "make"},
           {"/usr/bin/ld: cannot open output file a.out: Permission denied", "file-write-data", "a.out",
            "ld"},
           {"mount: /mnt: permission denied.", "file*", "/mnt", "mount"}})
    expect(known);
}

TEST_CASE("languages and their tools say it in ways of their own") {
  for (const known_line& known : std::vector<known_line>{
           {"PermissionError: [Errno 13] Permission denied: '/root/x'", "file*", "/root/x", ""},
           {"PermissionError: [Errno 1] Operation not permitted: 'a' -> 'b'", "file*", "b", ""},
           {"OSError: [Errno 13] Permission denied: \"it's\"", "file*", "it's", ""},
           {"Error: EACCES: permission denied, open '/root/x'", "file*", "/root/x", ""},
           {"Error: EPERM: operation not permitted, unlink 'x'", "file-write-unlink", "x", ""},
           {"npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules/x'",
            "file-write-create", "/usr/lib/node_modules/x", ""},
           {"Error: EACCES: permission denied, rename 'a' -> 'b'", "file-write-create", "b", ""},
           {"open /root/x: permission denied", "file*", "/root/x", ""},
           {"2026/01/02 03:04:05 mkdir /x: permission denied", "file*", "/x", ""},
           {"panic: open /x: permission denied", "file*", "/x", ""},
           {"fork/exec ./x: permission denied", "process-exec", "./x", ""},
           {"rg: /root: Permission denied (os error 13)", "file-read-data", "/root", "rg"},
           {"error: open(\"x\"): Permission denied", "file*", "x", ""},
           {"fatal: could not create work tree dir 'x': Permission denied", "file-write-create", "x", ""},
           {"error: could not lock config file .git/config: Permission denied", "file-write-create",
            ".git/config", ""},
           {"error: unable to create file a b: Permission denied", "file-write-create", "a b", ""},
           {"warning: unable to access '/root/.gitconfig': Permission denied", "file-read-metadata",
            "/root/.gitconfig", ""},
           {"Can't open '/root/x': Permission denied at -e line 1.", "file-read-data", "/root/x", ""},
           {"-e:1:in `read': Permission denied @ rb_sysopen - /root/x (Errno::EACCES)", "file*", "/root/x",
            ""},
           {"java.io.FileNotFoundException: /root/x (Permission denied)", "file*", "/root/x", ""},
           {"openat(AT_FDCWD, \"/root/x\", O_RDONLY) = -1 EACCES (Permission denied)", "file*", "/root/x",
            ""}})
    expect(known);
}

TEST_CASE("a refusal without a path is one of the program") {
  for (const known_line& known : std::vector<known_line>{
           {"ping: socket: Operation not permitted", "system-socket", "ping", "ping", false},
           {"sh: 1: kill: Operation not permitted", "file*", "kill", "sh", true},
           {"Permission denied", "system-call", "unknown", "", false},
           {"Error: Permission denied (os error 13)", "system-call", "unknown", "", false},
           {"npm error code EACCES", "system-call", "unknown", "", false},
           {"Error: Os { code: 13, kind: PermissionDenied, message: \"Permission denied\" }", "system-call",
            "unknown", "", false}})
    expect(known);
}

TEST_CASE("who was refused by another host is no violation") {
  for (const std::string_view line :
       {"git@github.com: Permission denied (publickey).", "me@h: Permission denied (publickey,password).",
        "Permission denied, please try again.", "me@h: Permission denied (keyboard-interactive)."}) {
    CAPTURE(line);
    CHECK_FALSE(read_refused_line(line));
  }
}

TEST_CASE("lines about something else say nothing") {
  for (const std::string_view line : {"", "all is well", "cat: x: No such file or directory", "EPERMISSION",
                                      "MY_EACCES=1", "ermission denied", "EACCESS denied"}) {
    CAPTURE(line);
    CHECK_FALSE(read_refused_line(line));
  }
}

TEST_CASE("colours and cursor movements are no part of what is read") {
  expect({"\x1b[31mcat\x1b[0m: \x1b]8;;x\x1b\\/root/x\x1b]8;;\a: \x1b[1mPermission denied\x1b[0m",
          "file-read-data", "/root/x", "cat"});
  CHECK(without_escape_sequences("a\x1b[2Jb\x1b]0;title\ac\x1b"
                                 "7d\x1b") == "abcd");
  CHECK(without_escape_sequences("a\x1b[") == "a");
}

TEST_CASE("what a program was given as a name cannot make two lines of one") {
  const auto read = read_refused_line("cat: 'a'$'\\n''b': Permission denied");
  REQUIRE(read);
  CHECK(read->target.find('\n') == std::string::npos);
}
