// Ordinary git work inside, with the standard policy, and what git on the host runs afterwards: nothing.
#include <cstdlib>

#include "cli_support.hpp"

using namespace ccbox::test;

namespace {

// Who works, where, and without the host's own configuration of git.
const std::string prelude =
    "set -e; export GIT_CONFIG_COUNT=4 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=A "
    "GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@b GIT_CONFIG_KEY_2=protocol.file.allow "
    "GIT_CONFIG_VALUE_2=always GIT_CONFIG_KEY_3=init.defaultBranch GIT_CONFIG_VALUE_3=main GIT_EDITOR=true; ";

finished guarded(const temporary_directory& work, const std::string& script) {
  return run({ccbox_program(), "run", "--quiet", "--", "sh", "-c", prelude + script}, in(work));
}

void works(const temporary_directory& work, const std::string& script) {
  const auto result = guarded(work, script);
  CAPTURE(script);
  CAPTURE(result.err);
  CHECK(result.code == 0);
}

finished on_host(const temporary_directory& work, const std::string& script) {
  return run({"sh", "-c", prelude + script}, in(work));
}

const std::string a_repository = "git init -q r; cd r; echo a > f; git add f; git commit -qm a; ";

// In every directory, as the host's user. What is planted below writes a file named `canary` when it runs.
void runs_nothing_on_the_host(const temporary_directory& work) {
  const auto result =
      on_host(work,
              "find . -type d | while read -r d; do (cd \"$d\" && git status >/dev/null 2>&1) || :; done; "
              "test ! -e canary");
  CHECK_MESSAGE(result.code == 0, result.err);
}

}  // namespace

TEST_CASE("a repository is made, committed to, branched, merged, rebased, stashed and removed") {
  const temporary_directory work;
  works(work,
        a_repository +
            "git checkout -qb b; echo b > g; git add g; git commit -qm b; git checkout -q main; echo c > h; "
            "git add h; git commit -qm c; git merge -q b -m m; git checkout -qb d HEAD~1; echo d > i; "
            "git add i; git commit -qm d; git rebase -q main; echo e >> i; git stash -q; git stash pop -q; "
            "git remote add o https://host/x.git; git config user.name B; git config --unset user.name; "
            "git branch -m d e; git reset -q --hard; git gc -q; git fsck");
  runs_nothing_on_the_host(work);
  works(work, "rm -r -f other; git init -q other; rm -rf other; test ! -e other");
}

TEST_CASE("a repository is cloned, bare too, and its clone pushes") {
  const temporary_directory work;
  works(work, a_repository +
                  "cd ..; git clone -q r c; git clone -q file://$PWD/r f; cd c; echo b > g; git add g; "
                  "git commit -qm b; git push -q origin HEAD:b; git pull -q --rebase; "
                  "git remote set-url origin ../f; git fetch -q");
  runs_nothing_on_the_host(work);
}

TEST_CASE("worktrees are added, listed and removed") {
  const temporary_directory work;
  works(work, a_repository +
                  "git worktree add -q ../w -b w; cd ../w; echo b > g; git add g; git commit -qm b; "
                  "git worktree list | grep -q /w; git worktree add -q ../v; cd ../r; "
                  "git worktree remove ../w; test ! -e ../w");
  runs_nothing_on_the_host(work);
}

TEST_CASE("submodules are added and updated") {
  const temporary_directory work;
  works(work, a_repository +
                  "cd ..; git init -q p; cd p; git submodule --quiet add ../r s; git commit -qm s; cd ..; "
                  "git clone -q p q; cd q; git submodule --quiet update --init; test -e s/f; "
                  "cd s; git status");
  runs_nothing_on_the_host(work);
}

TEST_CASE("settings by which git runs a program are refused, whoever writes them") {
  const temporary_directory work;
  works(work, a_repository);
  const auto before = on_host(work, "cat r/.git/config").out;
  const std::string program = work.write("evil", "#!/bin/sh\ntouch " + work.path() + "/canary\n");
  REQUIRE(std::system(("chmod 755 " + program).c_str()) == 0);
  for (const std::string key : {"core.fsmonitor", "core.hooksPath", "alias.st", "include.path",
                                "filter.x.clean", "diff.external", "credential.helper"}) {
    CAPTURE(key);
    const temporary_directory other;
    const auto refused = guarded(other, a_repository + "git config " + key + " " + program);
    CHECK(refused.code != 0);
    CHECK_FALSE(contains(on_host(other, "cat r/.git/config").out, program));
    const auto section = key.substr(0, key.find('.')), name = key.substr(key.rfind('.') + 1);
    const auto moved =
        guarded(other, "git init -q n; cd n; printf '[" + section + "]\\n" + name + " = " + program +
                           "\\n' > .git/config.lock; mv -f .git/config.lock .git/config");
    CHECK(moved.code != 0);
    CHECK_FALSE(contains(on_host(other, "cat n/.git/config").out, program));
    runs_nothing_on_the_host(other);
  }
  runs_nothing_on_the_host(work);
  CHECK(on_host(work, "cat r/.git/config").out == before);
}

TEST_CASE("what is planted for the host's git would run, if it could be planted") {
  const temporary_directory work;
  const std::string program = work.write("evil", "#!/bin/sh\ntouch " + work.path() + "/canary\n");
  REQUIRE(std::system(("chmod 755 " + program).c_str()) == 0);
  const std::string planted =
      "mkdir -p p/objects p/refs w; echo 'gitdir: ../p' > w/.git; echo 'ref: refs/heads/x' > p/HEAD; ";
  const std::string text = "printf '[core]\nbare = false\nfsmonitor = " + program + "\n' ";
  const std::string config = text + "> p/config; ";
  for (const std::string& attempt : std::vector<std::string>{
           planted + config, "mkdir p; " + config + planted,
           "mkdir p; " + config +
               "mkdir q; mv p/config q/config; mkdir -p p/refs p/objects; mv q/config p/config",
           planted + text + "> c; ln c p/config", planted + text + "> c; ln -s ../c p/config",
           planted + "mkdir p/hooks; cp evil p/hooks/post-index-change",
           planted + "mkdir h; cp evil h/post-index-change; mv -T h p/hooks",
           planted + "mkdir h; cp evil h/post-index-change; ln -s ../h p/hooks",
           "mkdir -p p/refs p/hooks x; cp evil p/hooks/post-index-change; mv x p/objects",
           "mkdir -p p/refs p/hooks x; cp evil p/hooks/post-index-change; ln -s ../x p/objects",
           "mkdir -p p/objects x; " + config + "mv x p/refs",
           "git init -q --bare p; ln p/config c; " + text + ">> c",
           "git init -q --bare p; " + text + ">> p/config",
           "git init -q --bare p; exec 7<p/config; " + text + ">> /proc/self/fd/7",
           "git init -q --bare p; git -C p config core.bare false; git -C p config core.fsmonitor " + program,
           "git init -q --bare p; git -C p config core.bare false; git -C p config extensions.worktreeConfig "
           "true; " +
               text + "> p/config.worktree"}) {
    CAPTURE(attempt);
    // Without the rules it succeeds, and git runs it.
    REQUIRE(on_host(work, attempt).code == 0);
    REQUIRE(on_host(work, planted + "cd w; touch z; git add z || :; git status || :; rm ../canary").code ==
            0);
    REQUIRE(on_host(work, "rm -rf p q x h c w").code == 0);
    CHECK(guarded(work, attempt).code != 0);
    on_host(work, "cd w && touch z && git add z");
    runs_nothing_on_the_host(work);
    REQUIRE(on_host(work, "rm -rf p q x h c w").code == 0);
  }
}

TEST_CASE("a way to git's directory that is there at the start leads to what is guarded, whatever its name") {
  for (const std::string way : {"ln -s ../store r/.git", "echo 'gitdir: ../store' > r/.git",
                                "ln -s ../middle r/.git; ln -s store middle"}) {
    const temporary_directory work;
    const std::string program = work.write("evil", "#!/bin/sh\ntouch " + work.path() + "/canary\n");
    REQUIRE(std::system(("chmod 755 " + program).c_str()) == 0);
    REQUIRE(on_host(work, "git init -q x; mv x/.git store; mkdir r; " + way).code == 0);
    CAPTURE(way);
    works(work, "cd r; echo a > f; git add f; git commit -qm a; git status");
    for (const std::string& attempt : std::vector<std::string>{
             "git -C r config core.fsmonitor " + program, "echo '[core]' >> store/config",
             "echo '[core]' >> r/.git/config", "cp evil store/hooks/post-index-change",
             "mv store/config store/c", "mv evil store/hooks/pre-commit",
             "printf '[core]\\nfsmonitor = " + program +
                 "\\n' > store/config.lock; mv store/config.lock store/config"}) {
      CAPTURE(attempt);
      CHECK(guarded(work, attempt).code != 0);
    }
    CHECK(on_host(work, "cd r; touch z; git add z; git status; test ! -e ../canary").code == 0);
  }
}

TEST_CASE("bare repositories of any name are made, cloned and pushed to") {
  const temporary_directory work;
  works(work,
        "git init -q --bare b; " + a_repository +
            "git push -q ../b HEAD:main; cd ..; git clone -q --bare r c; "
            "git clone -q --mirror r m; cd m; git remote update; git config --unset remote.origin.mirror");
  runs_nothing_on_the_host(work);
  works(work, "git init -q --bare x; mv x y; git init -q z; mv z u; rm -rf y u; test ! -e y -a ! -e u");
}

TEST_CASE("what libgit2 makes is a repository too") {
  const temporary_directory work;
  works(work,
        "cargo -q new --vcs git a; cd a; git status --porcelain | grep -q Cargo.toml; git add .; git commit "
        "-qm a; "
        "grep -q repositoryformatversion .git/config; test -e .git/info/exclude");
  runs_nothing_on_the_host(work);
}

TEST_CASE("a new, empty configuration is not written to by whoever has made it") {
  const temporary_directory work;
  works(work,
        "git init -q --bare b; rm b/config; mkdir -p r/.git; python3 - <<'E'\n"
        "import os\n"
        "for path in 'r/.git/config', 'b/config', 'r/config.worktree':\n"
        "  for flags in os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_EXCL, os.O_WRONLY | os.O_APPEND:\n"
        "    f = os.open(path, flags | os.O_CREAT, 0o600)\n"
        "    assert os.fstat(f).st_mode & 0o777 == 0o600\n"
        "    for way in (lambda: os.write(f, b'x'), lambda: os.ftruncate(f, 1), lambda: "
        "open('/proc/self/fd/%d' % f, 'w'),\n"
        "                lambda: os.open(path, flags | os.O_CREAT), lambda: os.link(path, 'l')):\n"
        "      try:\n"
        "        way()\n"
        "      except OSError:\n"
        "        continue\n"
        "      raise SystemExit('not refused: ' + path)\n"
        "    os.close(f)\n"
        "    assert os.path.getsize(path) == 0\n"
        "    os.unlink(path)\n"
        "E\n");
}

TEST_CASE("an owner's configuration stays as it is, and so does their worktree's way to it") {
  const temporary_directory work;
  REQUIRE(on_host(work, a_repository + "git worktree add -q ../w").code == 0);
  const auto state = "cat r/.git/config r/.git/worktrees/w/commondir r/.git/worktrees/w/gitdir";
  const auto before = on_host(work, state).out;
  for (const std::string attempt :
       {"cd r; git config user.name X", "rm -f r/.git/config", "mv r/.git/config x",
        "printf '' > r/.git/config.lock; mv -f r/.git/config.lock r/.git/config",
        "echo /x > r/.git/worktrees/w/commondir", "rm -f r/.git/worktrees/w/commondir",
        "mv r/.git/worktrees/w r/.git/worktrees/x", "mv r/.git r/g",
        "echo x > y; mv -f y r/.git/worktrees/w/gitdir", "echo /x > r/.git/commondir"}) {
    CAPTURE(attempt);
    CHECK(guarded(work, attempt).code != 0);
    CHECK(on_host(work, state).out == before);
  }
}

TEST_CASE("what the agent still holds of the file that it had checked is not the file that git reads") {
  const temporary_directory work;
  const auto result =
      guarded(work,
              "git init -q r; cd r/.git; python3 - <<'E'\n"
              "import os, mmap\n"
              "good = b'[core]\\n\\tbare = false\\n' + b'#' * 4096 + b'\\n'\n"
              "f = os.open('config.lock', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)\n"
              "os.write(f, good)\n"
              "shared = mmap.mmap(f, len(good))\n"
              "os.link('config.lock', 'other')\n"
              "os.rename('config.lock', 'config')\n"
              "assert not os.path.exists('config.lock')\n"
              "evil = b'[core]\\n\\tfsmonitor=x'\n"
              "shared[0:len(evil)] = evil\n"
              "shared.flush()\n"
              "os.pwrite(f, evil, 0)\n"
              "open('other', 'r+b').write(evil)\n"
              "assert open('config', 'rb').read() == good\n"
              "assert os.stat('config').st_nlink == 1 and os.stat('config').st_mode & 0o777 == 0o644\n"
              "for way in (lambda: open('config', 'r+b'), lambda: os.link('config', 'l'), lambda: "
              "os.link('other', 'config2/../config'),\n"
              "            lambda: os.rename('config', 'x'), lambda: os.truncate('config', 0),\n"
              "            lambda: os.replace('other', 'config')):\n"
              "  try:\n"
              "    way()\n"
              "  except OSError:\n"
              "    continue\n"
              "  raise SystemExit('not refused')\n"
              "E\n");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_FALSE(contains(on_host(work, "cat r/.git/config").out, "fsmonitor"));
}
