// Nothing of ours is ever seen in the host's tree, and what changes under a start is not followed.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/attacked.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

namespace fs = std::filesystem;

void make_project(const temporary_directory& root) {
  root.write("p/.git/config", "honest");
  root.write("p/.git/hooks/pre-commit", "honest");
  root.write("p/deep/er/.env", "secret");
  root.write("p/keys/id", "secret");
  root.write("home/.ssh/id", "secret");
}

planned_request whole_request(const temporary_directory& root) {
  return request_for_this_caller(
      {as_found(mount_rule(root / "p", 0)), as_found(mount_rule(root / "home", 0)),
       as_found(read_deny_rule(root / "home/.ssh", 0)), as_found(read_deny_rule(root / "p/deep/er/.env", 0)),
       as_found(read_deny_rule(root / "p/keys", 0)), as_found(read_deny_rule(root / "home/.aws", 0)),
       as_found(write_deny_rule(root / "p/.git/hooks", 0)),
       as_found(write_deny_rule(root / "p/.git/config", 0))});
}

std::string host_mounts() {
  std::ostringstream text;
  text << std::ifstream("/proc/self/mountinfo").rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the host's tree and mounts look the same before, during and after") {
  const temporary_directory root;
  make_project(root);
  const auto before = host_listing(root.path());
  const auto mounts = host_mounts();
  {
    attacked_enclosure inside(whole_request(root));
    CHECK(host_listing(root.path()) == before);
    CHECK(host_mounts() == mounts);
    inside.kill();
    CHECK(host_listing(root.path()) == before);
  }
  CHECK(host_listing(root.path()) == before);
  CHECK(host_mounts() == mounts);
}

// The whole group: bwrap's child waits for its parent without a limit, and would wait for a killed one
// forever.
TEST_CASE("a launcher that is killed at any moment leaves nothing in the host's tree and no process") {
  const temporary_directory root;
  make_project(root);
  const auto before = host_listing(root.path());
  const built_plugin backend("bubblewrap");
  const auto answer = backend.ask(whole_request(root));
  REQUIRE(answer.status == CCBOX_OK);
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    int ends[2], errors[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    REQUIRE(::pipe2(errors, O_CLOEXEC) == 0);
    unique_fd ours(ends[0]), theirs(ends[1]), error_read(errors[0]), error_write(errors[1]);
    auto launcher = start_launcher(answer.planned, theirs.get(), error_write.get());
    theirs.reset();
    error_write.reset();
    // The moment is the test's input, not a wait for something.
    const timespec moment{0, static_cast<long>(random() % 12000) * 1000};
    ::nanosleep(&moment, nullptr);
    REQUIRE(::kill(-launcher.pid(), SIGKILL) == 0);
    REQUIRE(launcher.wait().has_value());
    ours.reset();
    // Every process of the enclosure holds the writing end.
    pollfd wait{error_read.get(), 0, 0};
    CHECK_MESSAGE(::poll(&wait, 1, 5000) == 1,
                  "a process outlived its launcher, killed after " << moment.tv_nsec << " ns");
    CHECK(host_listing(root.path()) == before);
  }
}

TEST_CASE("a directory that is swapped for a link between check and mount is not followed") {
  const temporary_directory root, elsewhere;
  make_project(root);
  elsewhere.write("id", "of somebody else");
  const auto swap = [&] {
    fs::rename(root / "p", root / "p-before");
    fs::create_directory_symlink(elsewhere.path(), root / "p");
  };
  const auto request = request_for_this_caller({as_found(mount_rule(root / "p", 0))});
  const attacked_enclosure inside(request, swap);
  CHECK(inside.ask({"list", root / "p"}).data == ".git\ndeep\nkeys\n");
  CHECK(inside.attempt({"read", root / "p/id"}) != 0);
}

TEST_CASE(
    "a protected path that is swapped for a link between check and mount keeps the enclosure from starting") {
  // Links that bwrap would see while it sets up, when the host's tree is at /oldroot.
  for (const char* swapped : {"p/.git/hooks", "p/.git", "p/deep", "p/deep/er"}) {
    for (const bool of_setup : {true, false}) {
      INFO(swapped);
      const temporary_directory root, elsewhere;
      make_project(root);
      elsewhere.write("hooks/x", "");
      elsewhere.write("er/.env", "");
      const auto before = host_listing(elsewhere.path());
      const auto swap = [&] {
        fs::rename(root / swapped, root / "moved");
        fs::create_directory_symlink((of_setup ? "/oldroot" : "") + elsewhere.path(), root / swapped);
      };
      CHECK_THROWS_AS(attacked_enclosure(whole_request(root), swap), std::runtime_error);
      CHECK(host_listing(elsewhere.path()) == before);
    }
  }
}

TEST_CASE("a path that is removed or replaced before the start is an error, not something else") {
  const temporary_directory root;
  make_project(root);
  auto request = whole_request(root);
  fs::remove_all(root / "p/.git/hooks");
  CHECK_THROWS_WITH_AS(attacked_enclosure{request}, doctest::Contains("hooks"), std::runtime_error);
  fs::create_directory_symlink(root / "home", root / "p/.git/hooks");
  CHECK_THROWS_WITH_AS(attacked_enclosure{request}, doctest::Contains("hooks"), std::runtime_error);
  CHECK_THROWS_AS(attacked_enclosure(whole_request(root), [&] { fs::remove_all(root / "p"); }),
                  std::runtime_error);
}

TEST_CASE("twelve starts in one directory at once all succeed and leave it as it was") {
  const temporary_directory root;
  make_project(root);
  const auto before = host_listing(root.path());
  const built_plugin backend("bubblewrap");
  const auto answer = backend.ask(whole_request(root));
  REQUIRE(answer.status == CCBOX_OK);
  struct started {
    unique_fd channel;
    child launcher;
  };
  std::vector<started> all;
  for (int i = 0; i < 12; ++i) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    unique_fd theirs(ends[1]);
    all.push_back({unique_fd(ends[0]), start_launcher(answer.planned, theirs.get(), STDERR_FILENO)});
  }
  for (const auto& one : all) {
    REQUIRE(::send(one.channel.get(), "hello", 6, MSG_NOSIGNAL) == 6);
    pollfd wait{one.channel.get(), POLLIN, 0};
    REQUIRE(::poll(&wait, 1, 20000) == 1);
    char reply[16];
    CHECK(::recv(one.channel.get(), reply, sizeof reply, 0) == 5);
  }
  CHECK(host_listing(root.path()) == before);
  all.clear();
  CHECK(host_listing(root.path()) == before);
}
