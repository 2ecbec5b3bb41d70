// Whole plans of the bubblewrap backend, one argument a line. UPDATE_GOLDEN=1 writes them anew: read the
// difference.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "rule_bits.hpp"
#include "support/planned.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

constexpr std::uint32_t directory = CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY;
constexpr std::uint32_t file = CCBOX_RULE_EXISTS;
constexpr std::uint32_t read_only = CCBOX_RULE_READ_ONLY;
constexpr std::uint32_t of_system = CCBOX_RULE_SYSTEM | CCBOX_RULE_READ_ONLY;

// Which files of /proc are masked for a root caller depends on the kernel: bubblewrap_view_test has that.
std::vector<std::string> without_masks_of_proc(std::vector<std::string> words) {
  const std::vector<std::vector<std::string>> masks = {
      {"--ro-bind", "/dev/null"}, {"--perms", "0000", "--tmpfs"}, {"--remount-ro"}};
  for (std::size_t i = 0; i < words.size();) {
    const auto here = words.begin() + static_cast<std::ptrdiff_t>(i);
    const auto mask = std::find_if(masks.begin(), masks.end(), [&](const auto& m) {
      return i + m.size() < words.size() && std::equal(m.begin(), m.end(), here) &&
             words[i + m.size()].starts_with("/proc/");
    });
    if (mask == masks.end())
      ++i;
    else
      words.erase(here, here + static_cast<std::ptrdiff_t>(mask->size()) + 1);
  }
  return words;
}

std::string in_text(const plan& p) {
  std::ostringstream out;
  out << "# argv\n";
  for (const auto& word : p.argv)
    out << word << "\n";
  out << "# arguments by descriptor\n";
  for (const auto& word : without_masks_of_proc(bwrap_arguments(p)))
    out << word << "\n";
  out << "# descriptors\n";
  int number = plan::first_file_fd;
  for (bool found = true; found; ++number) {
    found = false;
    for (const auto& one : p.paths)
      if (one.number == number) found = true, out << number << " path " << one.host_path << "\n";
    for (const auto& one : p.files)
      if (one.number == number) found = true, out << number << " file " << one.label << "\n";
  }
  out << "# rules\n";
  for (const auto& layer : p.layers)
    out << (layer.empty() ? "-" : layer) << "\n";
  out << "# enforced\n"
      << join_rule_bits(p.enforced) << (p.identity_userns ? "\nidentity user namespace" : "") << "\n";
  return out.str();
}

void compare(const std::string& name, const planned_request& request) {
  const built_plugin backend("bubblewrap");
  const auto answer = backend.ask(request);
  REQUIRE_MESSAGE(answer.status == CCBOX_OK, answer.error);
  const auto path = std::string(CCBOX_TEST_SOURCE_DIR "/tests/golden/") + name + ".golden";
  const auto text = in_text(answer.planned);
  if (std::getenv("UPDATE_GOLDEN")) std::ofstream(path, std::ios::binary) << text;
  std::ostringstream expected;
  expected << std::ifstream(path, std::ios::binary).rdbuf();
  CHECK(text == expected.str());
}

// What config/policy.yaml gives every enclosure, shortened.
planned_request with_system(std::vector<planned_rule> rules) {
  planned_request request;
  request.rules = {mount_rule("/usr", directory | of_system),
                   mount_rule("/bin", CCBOX_RULE_EXISTS | CCBOX_RULE_SYMLINK | of_system),
                   mount_rule("/etc", directory | of_system)};
  request.rules.insert(request.rules.end(), rules.begin(), rules.end());
  request.workdir = "/home/u/project";
  return request;
}

}  // namespace

TEST_CASE("chat: a writable project with a repository in it") {
  compare("bubblewrap-chat",
          with_system({mount_rule("/home/u/project", directory), read_deny_rule("/home/u/.ssh", directory),
                       read_deny_rule("/home/u/project/.env", file),
                       write_deny_rule("/home/u/project/.git/hooks", directory),
                       write_deny_rule("/home/u/project/.git/config", file)}));
}

TEST_CASE("review, plan and orchestrate: the project is read-only, the runner's state is writable") {
  compare("bubblewrap-review",
          with_system({mount_rule("/home/u/project", directory | read_only),
                       mount_rule("/home/u/.runner", directory), read_deny_rule("/home/u/project/.env", file),
                       write_deny_rule("/home/u/project/.git/hooks", directory)}));
}

TEST_CASE("a root caller gets an identity user namespace and keeps four capabilities") {
  auto request = with_system({mount_rule("/srv/project", directory)});
  request.uid = request.gid = 0;
  request.home = "/root";
  compare("bubblewrap-root", request);
}

TEST_CASE(
    "the home directory is bound: secrets are masked, protected files re-bound, their directories pinned") {
  auto request =
      with_system({mount_rule("/home/u", directory), read_deny_rule("/home/u/.ssh", directory),
                   read_deny_rule("/home/u/.config/gh", directory), read_deny_rule("/home/u/.netrc", file),
                   read_deny_rule("/home/u/.aws", 0), write_deny_rule("/home/u/.bashrc", file),
                   write_deny_rule("/home/u/.zshrc", CCBOX_RULE_EXISTS | CCBOX_RULE_SYMLINK),
                   write_deny_rule("/home/u/dotfiles/zshrc", file | CCBOX_RULE_TARGET),
                   write_deny_rule("/home/u/src/a/.git/hooks", directory),
                   write_deny_rule("/home/u/src/a/.git/config", file)});
  request.home = "/run/ccbox/home";
  compare("bubblewrap-home", request);
}

TEST_CASE("nested mounts: the most specific wins in whatever order rules come") {
  compare("bubblewrap-nested", with_system({mount_rule("/home/u/project/vendor/cache", directory),
                                            mount_rule("/home/u/project", directory),
                                            mount_rule("/home/u/project/vendor", directory | read_only),
                                            write_deny_rule("/home/u/project/.agent", directory),
                                            mount_rule("/home/u/project/.agent/state", directory),
                                            read_deny_rule("/home/u/project/.agent/keys", directory)}));
}

TEST_CASE("the root directory is bound: /proc, /dev and /run are fresh all the same") {
  auto request = with_system({mount_rule("/", directory), write_deny_rule("/", directory)});
  request.rules.erase(request.rules.begin(), request.rules.begin() + 3);
  request.home = "/run/ccbox/home";
  request.tmpdir = "/run/ccbox/tmp";
  compare("bubblewrap-whole-root", request);
}

TEST_CASE(
    "waived bits: their rules are not applied, and the network of the host needs net_proxy_only waived") {
  auto request =
      with_system({mount_rule("/home/u/project", directory), read_deny_rule("/home/u/project/.env", file),
                   write_deny_rule("/home/u/project/.git/hooks", directory)});
  request.waived = CCBOX_RULE_FS_READ_DENY | CCBOX_RULE_NET_PROXY_ONLY;
  request.network = CCBOX_NETWORK_HOST;
  compare("bubblewrap-waived", request);
}

TEST_CASE("a mount at another place: denies hold where it is shown") {
  compare("bubblewrap-elsewhere", with_system({mount_rule("/srv/data", directory, "/home/u/data"),
                                               read_deny_rule("/srv/data/key.pem", file),
                                               write_deny_rule("/srv/data/a/b/.git/hooks", directory)}));
}

TEST_CASE("names with odd bytes are arguments like any other") {
  compare(
      "bubblewrap-odd-names",
      with_system({mount_rule("/home/u/[WIP] *?\\", directory), mount_rule("/home/u/line\nbreak", directory),
                   mount_rule("/home/u/\xff\xfe", directory), mount_rule("/home/u/--args", directory)}));
}

TEST_CASE("none: ccbox-init with the channel and nothing else") {
  const built_plugin none("none");
  planned_request request;
  const auto answer = none.ask(request);
  REQUIRE(answer.status == CCBOX_OK);
  CHECK(answer.planned.argv == std::vector<std::string>{"/usr/lib/ccbox/ccbox-init", "--channel", "3"});
  CHECK(answer.planned.unconfined);
  CHECK_FALSE(answer.planned.identity_userns);
  CHECK(answer.planned.enforced == CCBOX_RULE_RESOURCE_LIMITS);
  CHECK(none.kind() == "none");
  CHECK(none.probe(CCBOX_PROBE_QUICK).available);
}
