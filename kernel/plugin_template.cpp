#include "plugin_template.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace ccbox {
namespace {

namespace fs = std::filesystem;

// @NAME@ is the plugin's name, @CLASS@ its C++ class.
constexpr std::string_view cmake_text = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ VERSION 0.1.0 LANGUAGES CXX)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_package(ccbox REQUIRED)

# plugins/@NAME@.so in the build directory; it exports ccbox_plugin_v1 and nothing else.
ccbox_add_plugin(@NAME@ src/@NAME@.cpp)
target_compile_options(@NAME@ PRIVATE -Wall -Wextra)

enable_testing()

# The plan as text: what this backend answers to a request.
add_executable(plan_test tests/plan_test.cpp src/@NAME@.cpp)
target_link_libraries(plan_test PRIVATE ccbox::abi)
add_test(NAME plan COMMAND plan_test)

# What every plugin must keep.
add_test(NAME contract COMMAND $<TARGET_FILE:ccbox::command> plugin test $<TARGET_FILE:@NAME@>)
)";

constexpr std::string_view source_text =
    R"(// Backend `@NAME@` for ccbox: answers how to start an enclosure. ccbox starts it, and ccbox alone.
//
// As it stands this backend only starts ccbox-init. It has no boundary of its own and claims none, so ccbox refuses to
// run commands with it: a launch relies on rule bits, and a bit that is not claimed is a launch that does not happen.
// To make it useful, apply the rules of a bit in plan() and then, only then, add the bit to `enforceable`.
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "ccbox/plugin.hpp"

namespace {

namespace plugin = ccbox::plugin;

// What plan() really enforces, on every host where probe() says available. CCBOX_RULE_* in ccbox/plugin.h.
constexpr std::uint64_t enforceable = CCBOX_RULE_RESOURCE_LIMITS;

class @CLASS@ : public plugin::backend {
 public:
  static constexpr std::string_view kind = "native";

  // Options of the manifest entry; what is not asked for here is refused by name.
  @CLASS@(const plugin::host&, plugin::options& options) : launcher_(options.text("launcher", "/usr/bin/env")) {
    if (!launcher_.starts_with('/'))
      throw plugin::failure(CCBOX_INVALID, "option 'launcher' must be an absolute path");
  }

  // What this host offers. Quick: look, start nothing. Full: prove it by starting a trivial enclosure once.
  plugin::probe_answer probe(ccbox_probe_depth) override {
    plugin::probe_answer answer;
    answer.note = "@NAME@: no isolation yet";
    if (::access(launcher_.c_str(), X_OK) != 0) {
      answer.requires_install = true;
      answer.cause = "missing-tool";
      answer.hint = "the launcher is missing: install it, or set the option 'launcher'";
      return answer;
    }
    answer.available = true;
    answer.enforced = enforceable;
    return answer;
  }

  // How to start the enclosure. Starts nothing, writes nothing; may be called from several threads at once.
  void plan(const plugin::plan_request& request, plugin::plan_sink& sink) override {
    std::uint64_t enforced = enforceable;
    for (const auto& rule : request.rules()) {
      if (request.is_waived(rule)) continue;
      // Apply the rule here, and tell `ccbox explain` how:
      //   case CCBOX_KIND_MOUNT: pass on sink.open_path(rule.path), a descriptor that no symbolic link can redirect,
      //   and rule.guest_path; sink.layer(rule, "mount: bind").
      // A rule that is not applied takes its bit out of what this plan enforces.
      enforced &= ~rule.bit;
    }
    // argv ends in running ccbox-init with its channel. The descriptors are there under the numbers of the request.
    sink.arguments({launcher_, "/proc/self/fd/" + std::to_string(request.init_fd()), "--channel",
                    std::to_string(request.channel_fd())});
    sink.enforces(enforced);
  }

 private:
  const std::string launcher_;
};

}  // namespace

CCBOX_PLUGIN(@CLASS@, "@NAME@", "0.1.0")
)";

constexpr std::string_view test_text =
    R"(// Asks the backend for a plan and compares it with what it should be. The entry symbol is linked in: no loading needed.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "ccbox/plugin.h"

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

ccbox_str str(const std::string& text) { return {text.data(), text.size()}; }

struct plan {
  std::vector<std::string> argv;
  std::uint64_t enforced = 0;
};

ccbox_status ask(const ccbox_backend* backend, ccbox_plugin* instance, const std::vector<ccbox_rule>& rules, plan& out) {
  const std::string workdir = "/work", home = "/run/ccbox/home", tmpdir = "/tmp", session = "test";
  ccbox_plan_request request = {};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_rule);
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.session_id = str(session);
  request.workdir = str(workdir);
  request.home = str(home);
  request.tmpdir = str(tmpdir);
  request.channel_fd = 3;
  request.init_fd = 4;

  ccbox_plan_sink sink = {};
  sink.size = sizeof sink;
  sink.ctx = &out;
  sink.argument = [](void* ctx, ccbox_str text) { static_cast<plan*>(ctx)->argv.emplace_back(text.ptr, text.len); };
  sink.environment = [](void*, ccbox_str, ccbox_str) {};
  sink.file = [](void*, ccbox_str, ccbox_str) -> std::int32_t { return 5; };
  sink.open_path = [](void*, ccbox_str) -> std::int32_t { return 5; };
  sink.layer = [](void*, std::size_t, ccbox_str) {};
  sink.enforces = [](void* ctx, std::uint64_t bits) { static_cast<plan*>(ctx)->enforced = bits; };
  sink.flags = [](void*, std::uint32_t) {};

  char buffer[256];
  ccbox_text error = {buffer, sizeof buffer, 0};
  return backend->plan(instance, &request, &sink, &error);
}

}  // namespace

int main() {
  ccbox_host host = {};
  host.size = sizeof host;
  ccbox_config config = {sizeof(ccbox_config), sizeof(ccbox_option), nullptr, 0};
  char buffer[256];
  ccbox_text error = {buffer, sizeof buffer, 0};
  ccbox_plugin* instance = nullptr;
  const auto* descriptor = ccbox_plugin_v1();
  if (descriptor->create(&host, &config, &instance, &error) != CCBOX_OK) {
    std::fprintf(stderr, "create failed: %.*s\n", static_cast<int>(error.length), error.ptr);
    return 1;
  }
  const std::string name = CCBOX_BACKEND_EXTENSION;
  const auto* backend = static_cast<const ccbox_backend*>(descriptor->get_extension(instance, str(name)));
  check(backend != nullptr, "it is a backend");
  if (!backend) return 1;

  plan empty;
  check(ask(backend, instance, {}, empty) == CCBOX_OK, "a request without rules is planned");
  check(empty.argv == std::vector<std::string>{"/usr/bin/env", "/proc/self/fd/4", "--channel", "3"},
        "the plan starts ccbox-init on its channel");
  check(empty.enforced == CCBOX_RULE_RESOURCE_LIMITS, "it claims what it does and nothing else");

  const std::string path = "/work", reason = "mount of the spec";
  plan mounted;
  const ccbox_rule mount = {CCBOX_KIND_MOUNT, CCBOX_RULE_EXISTS, CCBOX_RULE_FS_BINDS_ONLY, str(path), str(path),
                            str(reason)};
  check(ask(backend, instance, {mount}, mounted) == CCBOX_OK, "a request with a mount is planned");
  check((mounted.enforced & CCBOX_RULE_FS_BINDS_ONLY) == 0, "a mount that is not applied is not claimed");

  descriptor->destroy(instance);
  return failures == 0 ? 0 : 1;
}
)";

constexpr std::string_view readme_text = R"(# @NAME@, a backend for ccbox

```sh
cmake -S . -B build              # add -DCMAKE_PREFIX_PATH=PREFIX if ccbox is installed under another PREFIX
cmake --build build
ctest --test-dir build --output-on-failure
```

`src/@NAME@.cpp` is the backend: `probe` says what this host can enforce, `plan` says how to start an enclosure. As
written it starts ccbox-init and claims no boundary, so ccbox loads it and refuses to run commands with it. The comments
in it say where to go on; docs/abi.md of ccbox has the rules.

To load it, copy the file into a directory that `directories:` of ccbox's plugins.yaml lists:

```sh
sudo install -D -m 644 build/plugins/@NAME@.so /usr/local/lib/ccbox/plugins.d/@NAME@.so
ccbox plugins                    # says whether it was loaded, and if not, why
```
)";

constexpr std::string_view ignore_text = "/build/\n";

bool is_plugin_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 32 && lower(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

result<void> check_name(const std::string& name) {
  if (!is_plugin_name(name))
    return error{error_code::invalid_argument,
                 "the plugin name " + ccbox::quoted(name) + " is not [a-z][a-z0-9_-]{0,31}",
                 "use lower case letters, digits, '-' and '_'"};
  // Kinds and shipped plugins; then targets that CMake's generators make themselves, and the template's own.
  constexpr std::string_view taken[] = {
      "ccbox",    "native",         "seatbelt",   "bubblewrap",    "microvm",
      "none",     "egress",         "violations", "all",           "clean",
      "depend",   "edit_cache",     "help",       "install",       "list_install_components",
      "package",  "package_source", "preinstall", "rebuild_cache", "test",
      "plan_test"};
  if (std::find(std::begin(taken), std::end(taken), name) != std::end(taken))
    return error{error_code::conflict, "the plugin name " + ccbox::quoted(name) + " is taken",
                 "choose another name"};
  return {};
}

// my-vm2 → my_vm2_backend: never a C++ keyword, never a reserved name.
std::string class_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char mapped = c == '-' ? '_' : c;
    if (mapped == '_' && !out.empty() && out.back() == '_') continue;
    out += mapped;
  }
  return out + (out.back() == '_' ? "backend" : "_backend");
}

std::string filled_in(std::string_view text, const std::string& name) {
  std::string out(text);
  for (const auto& [key, value] : {std::pair<std::string_view, std::string>("@NAME@", name),
                                   std::pair<std::string_view, std::string>("@CLASS@", class_name(name))}) {
    for (auto at = out.find(key); at != std::string::npos; at = out.find(key, at + value.size()))
      out.replace(at, key.size(), value);
  }
  return out;
}

result<void> write_file(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed) return system_error("mkdir", path.parent_path().string(), failed.value());
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return system_error("write", path.string(), errno ? errno : EIO);
  return {};
}

}  // namespace

result<void> write_plugin_project(const std::string& name, const std::string& directory) {
  if (auto fine = check_name(name); !fine) return fine;
  // mkdir alone decides: whatever has that name already, a dangling link too, is left as it is.
  if (::mkdir(directory.c_str(), 0777) != 0)
    return system_error("mkdir", directory, errno,
                        errno == EEXIST ? "remove it, or choose another name" : "");
  const fs::path base(directory);
  const std::pair<fs::path, std::string_view> files[] = {{base / "CMakeLists.txt", cmake_text},
                                                         {base / "src" / (name + ".cpp"), source_text},
                                                         {base / "tests" / "plan_test.cpp", test_text},
                                                         {base / "README.md", readme_text},
                                                         {base / ".gitignore", ignore_text}};
  for (const auto& [path, text] : files) {
    if (auto written = write_file(path, filled_in(text, name)); !written) {
      std::error_code ignored;
      fs::remove_all(base, ignored);
      return written;
    }
  }
  return {};
}

}  // namespace ccbox
