// Package managers through a session's proxies: each fetches one package from an allowed registry and is
// refused by a denied one, in words that name ccbox or are followed by ours.
#include "client_scene.hpp"

using namespace ccbox::test;

namespace {

const std::string by_ccbox = "Forbidden (ccbox: blocked-by-allowlist)";

}  // namespace

TEST_CASE("pip installs from an allowed index alone") {
  const client_scene s({"pip"});
  const auto pip = [&](const std::string& index) {
    return s.run({"/usr/bin/pip3", "install", "-q", "--disable-pip-version-check", "--retries", "1",
                  "--target", "lib", "--index-url", index, "tiny"},
                 {"--env", "PIP_CERT=ca.pem"});
  };
  CHECK(pip(s.at_allowed("https", "simple")).code == 0);
  CHECK(read_file(s.work() + "/lib/tiny.py") == "greeting = 'hello'\n");
  const auto refused = pip(s.at_denied("https", "simple"));
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "Tunnel connection failed: 403 " + by_ccbox));
  CHECK(contains(refused.err, s.reported("https")));
}

TEST_CASE("npm installs from an allowed registry alone, over https and http") {
  const client_scene s({"npm"});
  const auto npm = [&](const arguments& words, const std::string& registry) {
    return s.run(arguments{"/usr/bin/npm"} + words +
                     arguments{"--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries", "0",
                               "--registry", registry},
                 {"--env", "NODE_EXTRA_CA_CERTS=ca.pem"});
  };
  CHECK(npm({"install", "--prefix", "here", "tiny"}, s.at_allowed("https", "npm")).code == 0);
  CHECK(exists(s.work() + "/here/node_modules/tiny/package.json"));
  CHECK(contains(npm({"view", "tiny", "version"}, s.at_allowed("http", "npm")).out, "1.0.0"));
  for (const std::string scheme : {"https", "http"}) {
    CAPTURE(scheme);
    const auto refused = npm({"view", "tiny"}, s.at_denied(scheme, "npm"));
    CHECK(refused.code == 1);
    CHECK(contains(refused.err, "403 " + by_ccbox + " - GET " + s.at_denied(scheme, "npm/tiny")));
    CHECK(contains(refused.err, s.reported(scheme)));
  }
}

TEST_CASE("go fetches from an allowed module proxy alone") {
  const client_scene s({"go"});
  s.write("module/go.mod", "module example.test/user\n");
  const auto go = [&](const std::string& proxy) {
    return s.run_script(
        "cd module && exec /usr/bin/go get allowed.test/tiny@v1.0.0",
        {"--env", "SSL_CERT_FILE=" + s.authority(), "--env", "GOSUMDB=off", "--env", "GOPROXY=" + proxy});
  };
  const auto refused = go(s.at_denied("https", "go"));
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "v1.0.0.info\": " + by_ccbox));
  CHECK(contains(refused.err, s.reported("https")));
  const auto done = go(s.at_allowed("https", "go"));
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(contains(read_file(s.work() + "/module/go.mod"), "require allowed.test/tiny v1.0.0"));
}

TEST_CASE("cargo fetches from an allowed registry alone") {
  const client_scene s({"cargo"});
  s.write("crate/Cargo.toml",
          "[package]\nname = \"user\"\nversion = \"0.1.0\"\n"
          "[dependencies]\ntiny = {version = \"1\", registry = \"test\"}\n");
  s.write("crate/src/lib.rs", "");
  const auto cargo = [&](const std::string& index, const std::string& by_git) {
    return s.run_script(
        "cd crate && /usr/bin/cargo fetch && ls $CARGO_HOME/registry/cache/*",
        {"--env", "CARGO_HOME=/tmp/cargo", "--env", "CARGO_REGISTRIES_TEST_INDEX=" + index, "--env",
         "CARGO_HTTP_CAINFO=" + s.authority(), "--env", "GIT_SSL_CAINFO=" + s.authority(), "--env",
         "CARGO_NET_RETRY=0", "--env", "CARGO_NET_GIT_FETCH_WITH_CLI=" + by_git});
  };
  const auto index = s.at_denied("https", "index.git");
  // With the git library that is in cargo, and with the program git.
  for (const std::string by_git : {"false", "true"}) {
    CAPTURE(by_git);
    const auto refused = cargo(index, by_git);
    CHECK(refused.code != 0);
    CHECK(contains(refused.err, "failed to fetch `" + index + "`"));
    CHECK(contains(refused.err, "CONNECT tunnel failed, response 403"));
    CHECK(contains(refused.err, s.reported("https")));
  }
  // The library reads no repository that is plain files.
  const auto done = cargo(s.at_allowed("https", "index.git"), "true");
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(contains(done.out, "tiny-1.0.0.crate"));
}

TEST_CASE("cargo fetches a dependency over ssh, with the program git") {
  const client_scene s({"git"});
  s.write("known_hosts", s.known_host());
  s.write("crate/src/lib.rs", "");
  const auto cargo = [&](const std::string& repository) {
    s.write("crate/Cargo.toml",
            "[package]\nname = \"user\"\nversion = \"0.1.0\"\n[dependencies]\ntiny = {git = \"" + repository +
                "\"}\n");
    return s.run_script("mkdir -p ~/.ssh && cp known_hosts ~/.ssh/ && cd crate && exec /usr/bin/cargo fetch",
                        {"--env", "CARGO_HOME=/tmp/cargo", "--env", "CARGO_NET_RETRY=0"});
  };
  const auto refused = cargo("ssh://git@" + s.denied("ssh") + "/repo.git");
  CHECK(refused.code != 0);
  CHECK(contains(refused.err, s.denied("ssh") + ": refused by the session's rules"));
  CHECK(contains(refused.err, s.reported("ssh")));
  const auto done = cargo("ssh://git@" + s.allowed("ssh") + "/repo.git");
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(
      contains(read_file(s.work() + "/crate/Cargo.lock"), "git+ssh://git@" + s.allowed("ssh") + "/repo.git"));
}

TEST_CASE("apt updates and downloads from an allowed repository alone") {
  const client_scene s({"apt"});
  const auto apt = [&](const std::string& repository) {
    s.write("sources.list", "deb [trusted=yes] " + repository + " ./\n");
    return s.run_script(
        "state=/tmp/apt; mkdir -p $state/etc $state/lib/lists/partial $state/cache/archives/partial\n"
        "touch $state/status\n"
        "apt() {\n"
        "  apt-get -q -o Dir::Etc=$state/etc -o Dir::Etc::SourceList=$PWD/sources.list -o "
        "Dir::State=$state/lib "
        "-o Dir::State::status=$state/status -o Dir::Cache=$state/cache -o APT::Sandbox::User= "
        "-o Acquire::Retries=0 -o Acquire::https::CAInfo=$PWD/ca.pem \"$@\"\n"
        "}\n"
        "apt update && apt download tiny && dpkg-deb -f tiny_1.0.0_all.deb Package; status=$?\n"
        "rm -f tiny_1.0.0_all.deb; exit $status\n");
  };
  for (const std::string scheme : {"http", "https"}) {
    CAPTURE(scheme);
    const auto done = apt(s.at_allowed(scheme, "apt"));
    CHECK_MESSAGE(done.code == 0, done.err);
    CHECK(done.out.ends_with("tiny\n"));
    const auto refused = apt(s.at_denied(scheme, "apt"));
    CHECK(refused.code == 100);
    CHECK(contains(refused.err, "Failed to fetch " + s.at_denied(scheme, "apt/./")));
    CHECK(contains(refused.out + refused.err, by_ccbox));
    CHECK(contains(refused.err, s.reported(scheme)));
  }
}
