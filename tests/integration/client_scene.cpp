#include "client_scene.hpp"

#include <sstream>

namespace ccbox::test {
namespace {

const std::string support = CCBOX_TEST_SOURCE_DIR "/tests/support/";
const std::string search_path = "PATH=/usr/bin:/bin";

void must(const arguments& argv, const std::string& cwd) {
  run_options options;
  options.cwd = cwd;
  options.extra_env = {search_path};
  const auto done = run(argv, options);
  REQUIRE_MESSAGE(done.code == 0, argv[0] << ": " << done.err);
}

// A certificate authority, and by it the origin's certificate.
const char* const certify =
    "set -e\n"
    "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
    "openssl req -x509 $new -days 2 -subj '/CN=authority of the test' -keyout ca.key -out work/ca.pem\n"
    "openssl req $new -subj /CN=allowed.test -keyout origin.key -out origin.csr\n"
    "printf 'subjectAltName=DNS:allowed.test\\nbasicConstraints=CA:FALSE\\n' > extensions\n"
    "openssl x509 -req -in origin.csr -CA work/ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "
    "extensions "
    "-out origin.pem\n";

}  // namespace

client_scene::client_scene(const arguments& packages) {
  names_.set("allowed.test", {{"127.0.0.1"}});
  dir_.write("work/x", "");
  dir_.write("served/hello.txt", "hello\n");
  must({"sh", "-c", certify}, dir_.path());
  start_origin();
  if (!packages.empty())
    must(arguments{support + "make-client-packages", dir_ / "served", "https://" + allowed("https")} +
             packages,
         dir_.path());
  const auto manifest =
      dir_.write("plugins.yaml",
                 "plugins:\n  - path: bubblewrap.so\n    priority: 100\n  - path: egress.so\n"
                 "    options: {resolver: \"127.0.0.1:" +
                     std::to_string(names_.port()) + "\"}\n");
  std::string destinations;
  for (const std::string scheme : {"http", "https", "ssh"})
    destinations += "      " + allowed(scheme) + " the origin\n";
  const auto rules =
      dir_.write("egress.yaml",
                 "settings:\n  allowed_resolved_ranges: |\n    127.0.0.0/8 where the origin is\n"
                 "baseline:\n  test:\n    why: the origin\n    domains: |\n" +
                     destinations + "github: {}\nticketing: {}\noptional: {}\ndenied: {}\nfloor: {}\n");
  files_ = {"--plugins", manifest, "--egress-config", rules};
}

void client_scene::start_origin() {
  run_options options;
  options.extra_env = {search_path};
  origin_ = std::make_unique<running>(running::start(
      {support + "client-origin", dir_ / "served", dir_ / "origin.pem", dir_ / "origin.key"}, options));
  REQUIRE(origin_->wait_for("ready\n"));
}

finished client_scene::run(const arguments& command, const arguments& options) const {
  run_options how;
  how.cwd = work();
  how.extra_env = {search_path};
  return test::run(arguments{ccbox_program(), "run", "--backend", "bubblewrap"} + files_ + options +
                       arguments{"--"} + command,
                   how);
}

finished client_scene::run_script(const std::string& script, const arguments& options) const {
  return run({"sh", "-c", script}, options);
}

std::string client_scene::word_of_origin(const std::string& key) const {
  std::istringstream lines(origin_->out());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key + " ")) return line.substr(key.size() + 1);
  FAIL("the origin has no " << key);
  return {};
}

std::string client_scene::allowed(const std::string& scheme) const {
  return "allowed.test:" + word_of_origin(scheme);
}
std::string client_scene::denied(const std::string& scheme) const {
  return "denied.test:" + word_of_origin(scheme);
}
std::string client_scene::at_allowed(const std::string& scheme, const std::string& path) const {
  return scheme + "://" + allowed(scheme) + "/" + path;
}
std::string client_scene::at_denied(const std::string& scheme, const std::string& path) const {
  return scheme + "://" + denied(scheme) + "/" + path;
}

std::string client_scene::reported(const std::string& scheme) const {
  const auto to = denied(scheme);
  return " to " + to + ": blocked-by-allowlist; allow it with --allow-domain '" + to + "'\n";
}

std::string client_scene::known_host() const {
  return "[allowed.test]:" + word_of_origin("ssh") + " " + word_of_origin("hostkey") + "\n";
}

}  // namespace ccbox::test
