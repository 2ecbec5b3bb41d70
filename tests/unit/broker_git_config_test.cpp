// Which configuration of git may come into place, and that git reads it as we do.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plugins/bubblewrap/broker/git_config.hpp"
#include "support/run_command.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox::bubblewrap;
using namespace ccbox::test;

namespace {

const std::string here = "/w/.git";

std::string objection(const std::string& text, const std::string& directory = here) {
  return objection_to_git_config(text, directory);
}

std::string listed_by_git(const std::string& text) {
  const temporary_directory work;
  const auto result = run({"git", "config", "--file", work.write("c", text), "--list", "-z"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  return result.out;
}

}  // namespace

TEST_CASE("git reads what is accepted as the broker has read it") {
  for (const std::string& text : std::vector<std::string>{"",
                                                          "\n",
                                                          "# c\n; d\n",
                                                          "[core]\n\tbare = false\n",
                                                          "[CORE]\nBare=TRUE",
                                                          "[core]\r\nbare = true\r\n",
                                                          "[remote \"A.b c\"]\n\turl = https://h/p\n",
                                                          "[a \"q\\\"u\\\\o\\te\"]\nk = v\n",
                                                          "[a-1]\nk-2 = v\n",
                                                          "[a]\nk = one two   three  \n",
                                                          "[a]\nk = \" one \" ; c\n",
                                                          "[a]\nk = x\"#;\"y # c\n",
                                                          "[a]\nk =\n",
                                                          "[a]\nk = \\\"x\\\\y\\n\\tz\n",
                                                          "  [a] # c\n\t k\t=\tv\t\n",
                                                          "[a]\nk = \xc3\xbc\xff\n",
                                                          "[a]\nk = b=c [d]\n",
                                                          "[a \"\"]\nk = v\n",
                                                          "[a]\nk = 1\n[a]\nk = 2\n",
                                                          "[a]\nk = " + std::string(100'000, 'x') + "\n"}) {
    CAPTURE(text.substr(0, 100));
    std::string problem, ours;
    const auto settings = parse_git_config(text, problem);
    REQUIRE_MESSAGE(settings.has_value(), problem);
    for (const auto& setting : *settings)
      ours += setting.key + '\n' + setting.value + '\0';
    CHECK(ours == listed_by_git(text));
  }
}

TEST_CASE("what git could read in another way is refused with its line") {
  for (const std::string& text : std::vector<std::string>{"[a]\nk\n",
                                                          "[a]\nk # = v\n",
                                                          "[a]\nk = v\\\n w\n",
                                                          "[a]\nk = \"v\n",
                                                          "[a]\nk = \\q\n",
                                                          "[a]\nk = \\b\n",
                                                          "[a.b]\nk = v\n",
                                                          "[a \"b]\nk = v\n",
                                                          "[a \"b\"\nk = v\n",
                                                          "[a\nk = v\n",
                                                          "[a] k = v\n",
                                                          "k = v\n",
                                                          "\xef\xbb\xbf[a]\nk = v\n",
                                                          std::string("[a]\nk = v\0\n", 11),
                                                          "[a]\nk = a\tb\n",
                                                          "[a]\nk = v\rw\n",
                                                          "[a]\nk = v\r",
                                                          "[a]\n1k = v\n",
                                                          "[a]\nk_ = v\n",
                                                          "[]\nk = v\n",
                                                          "[a]\nk = x\x0cy\n",
                                                          "[a b]\nk = v\n"}) {
    CAPTURE(text);
    std::string problem;
    CHECK_FALSE(parse_git_config(text, problem));
    CHECK(problem.starts_with("line "));
    CHECK(objection(text) == problem);
  }
}

TEST_CASE("settings that ordinary work writes are harmless") {
  for (const std::string& text : std::vector<std::string>{
           "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = "
           "true\n",
           "[remote \"o\"]\nurl = git@host:a/b.git\nfetch = +refs/heads/*:refs/remotes/o/*\ntagopt = "
           "--no-tags\n",
           "[remote \"o\"]\nurl = ../b\npushurl = ssh://git@h/x\n", "[remote \"o\"]\nurl = https://[::1]/x\n",
           "[branch \"m\"]\nremote = .\nmerge = refs/heads/m\nrebase = true\ndescription = \"a\\nb\"\n",
           "[user]\nname = A B\nemail = a@b\n", "[commit]\ngpgsign = false\n", "[color]\nui = auto\n",
           "[advice]\ndetachedHead = false\n", "[submodule \"s\"]\nactive = true\nurl = /x\n",
           "[extensions]\nobjectFormat = sha256\nworktreeConfig = true\n"}) {
    CAPTURE(text);
    CHECK(objection(text).empty());
  }
}

TEST_CASE("everything that runs something or leads elsewhere is refused by its key") {
  struct line {
    const char* text;
    const char* key;
  };
  for (const auto& [text, key] :
       std::vector<line>{{"[core]\nfsmonitor = x\n", "core.fsmonitor"},
                         {"[CoRe]\nFsMonitor = true\n", "core.fsmonitor"},
                         {"[core]\nhooksPath = x\n", "core.hookspath"},
                         {"[core]\nbare = false\nsshCommand = x\n", "core.sshcommand"},
                         {"[core]\neditor = x\n", "core.editor"},
                         {"[core]\npager = x\n", "core.pager"},
                         {"[core]\nattributesFile = x\n", "core.attributesfile"},
                         {"[core]\nexcludesFile = x\n", "core.excludesfile"},
                         {"[core]\ngitProxy = x\n", "core.gitproxy"},
                         {"[core]\naskPass = x\n", "core.askpass"},
                         {"[core]\nalternateRefsCommand = x\n", "core.alternaterefscommand"},
                         {"[core]\nprotectHFS = false\n", "core.protecthfs"},
                         {"[core]\nrepositoryformatversion = 7\n", "core.repositoryformatversion"},
                         {"[core \"x\"]\nbare = true\n", "core.x.bare"},
                         {"[alias]\nst = !x\n", "alias.st"},
                         {"[include]\npath = x\n", "include.path"},
                         {"[includeIf \"gitdir:/\"]\npath = x\n", "includeif.gitdir:/.path"},
                         {"[filter \"x\"]\nclean = x\n", "filter.x.clean"},
                         {"[diff]\nexternal = x\n", "diff.external"},
                         {"[diff \"x\"]\ntextconv = x\n", "diff.x.textconv"},
                         {"[merge \"x\"]\ndriver = x\n", "merge.x.driver"},
                         {"[credential]\nhelper = x\n", "credential.helper"},
                         {"[gpg]\nprogram = x\n", "gpg.program"},
                         {"[commit]\ngpgsign = true\n", "commit.gpgsign"},
                         {"[pager]\nstatus = x\n", "pager.status"},
                         {"[extensions]\npartialClone = o\n", "extensions.partialclone"},
                         {"[remote \"o\"]\npromisor = true\n", "remote.o.promisor"},
                         {"[remote \"o\"]\nuploadpack = x\n", "remote.o.uploadpack"},
                         {"[remote \"o\"]\nvcs = x\n", "remote.o.vcs"},
                         {"[remote \"o\"]\nurl = ext::sh -c x\n", "remote.o.url"},
                         {"[remote \"o\"]\nurl = \"fd::7\"\n", "remote.o.url"},
                         {"[remote \"o\"]\nurl = foo://x\n", "remote.o.url"},
                         {"[remote \"o\"]\nurl = -x\n", "remote.o.url"},
                         {"[branch \"m\"]\nremote = ext::x\n", "branch.m.remote"},
                         {"[url \"ext::x\"]\ninsteadOf = https\n", "url.ext::x.insteadof"},
                         {"[submodule \"s\"]\nupdate = !x\n", "submodule.s.update"},
                         {"[submodule \"../s\"]\nurl = x\n", "submodule.../s.url"},
                         {"[color]\nui = x\n", "color.ui"},
                         {"[color \"diff\"]\nmeta = red\n", "color.diff.meta"},
                         {"[user]\nsigningkey = x\n", "user.signingkey"}}) {
    CAPTURE(text);
    CHECK(objection(text).starts_with(std::string(key) + " is not a setting"));
  }
}

TEST_CASE("a work tree is in the tree around the git directory and not in one") {
  const auto with = [](const std::string& path, const std::string& directory) {
    return objection("[core]\n\tworktree = " + path + "\n", directory).empty();
  };
  CHECK(with("../../../sub", "/w/.git/modules/sub"));
  CHECK(with("../../../../a/b", "/w/.git/modules/a/b"));
  CHECK(with("../../../../../a/b", "/w/.git/modules/a/modules/b"));
  for (const char* path : {"/sub", "sub", "../../../..", "../../../../other", "../../../../../../../etc",
                           "..", "../../../sub/../..", "../../../.git/hooks", "../../../.GIT/hooks",
                           "../../hooks", "../../../sub/.git", "../../.././sub"}) {
    CAPTURE(path);
    CHECK_FALSE(with(path, "/w/.git/modules/sub"));
  }
  CHECK_FALSE(with("../sub", "/w/modules/sub"));
}
