// git through a session's proxies: over https by HTTPS_PROXY, over ssh by GIT_SSH_COMMAND.
#include "client_scene.hpp"

using namespace ccbox::test;

namespace {

// ssh looks in the home directory of the password file, which is HOME inside as well.
const std::string trust_origin = "mkdir -p ~/.ssh && cp known_hosts ~/.ssh/ && ";

struct git_scene : client_scene {
  git_scene() : client_scene({"git"}) { write("known_hosts", known_host()); }
  std::string cloned() const { return read_file(work() + "/clone/greeting"); }
};

}  // namespace

TEST_CASE("git clones over https what is allowed") {
  const git_scene s;
  const auto done = s.run({"git", "clone", "-q", s.at_allowed("https", "repo.git"), "clone"},
                          {"--env", "GIT_SSL_CAINFO=" + s.authority()});
  CHECK(done.code == 0);
  CHECK(s.cloned() == "hello\n");
}

TEST_CASE("git is refused over https with the proxy's 403, and asks for no password") {
  const git_scene s;
  const auto done = s.run({"git", "clone", "-q", s.at_denied("https", "repo.git"), "clone"});
  CHECK(done.code == 128);
  CHECK(contains(done.err, "unable to access '" + s.at_denied("https", "repo.git/") +
                               "': CONNECT tunnel failed, response 403"));
  CHECK(contains(done.err, s.reported("https")));
  CHECK_FALSE(contains(done.err, "Username"));
}

TEST_CASE("git clones over ssh what is allowed") {
  const git_scene s;
  const auto done =
      s.run_script(trust_origin + "exec git clone -q ssh://git@" + s.allowed("ssh") + "/repo.git clone");
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(s.cloned() == "hello\n");
}

TEST_CASE("git is refused over ssh with the reason and the remedy") {
  const git_scene s;
  const auto done = s.run({"git", "ls-remote", "ssh://git@" + s.denied("ssh") + "/repo.git"});
  CHECK(done.code == 128);
  CHECK(contains(done.err, "/run/ccbox/bin/net-connect: " + s.denied("ssh") +
                               ": refused by the session's rules: " + s.denied("ssh") +
                               " is refused: no rule allows it; allow it with --allow-domain " +
                               s.denied("ssh")));
  CHECK(contains(done.err, s.reported("ssh")));
}

TEST_CASE("ssh alone fails at the name, and works with the helper as its ProxyCommand") {
  const git_scene s;
  const auto split = s.allowed("ssh").find(':');
  const auto ssh = "ssh -p " + s.allowed("ssh").substr(split + 1) + " -o BatchMode=yes ";
  const std::string upload = " git@allowed.test git-upload-pack repo.git </dev/null";
  const auto alone = s.run_script(trust_origin + ssh + upload);
  CHECK(alone.code == 255);
  CHECK(contains(alone.err, "Could not resolve hostname allowed.test"));
  const auto helped =
      s.run_script(trust_origin + ssh + "-o ProxyCommand='/run/ccbox/bin/net-connect %h %p'" + upload);
  CHECK(contains(helped.out, "refs/heads/main"));
}
