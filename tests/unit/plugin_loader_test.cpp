#include "plugin_loader.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "backend.hpp"
#include "os.hpp"
#include "support/os_faults.hpp"
#include "support/result_printing.hpp"
#include "support/temporary_directory.hpp"
#include "unique_fd.hpp"

using namespace ccbox;
namespace fs = std::filesystem;

namespace {

// A host that remembers what plugins say; it outlives them.
struct recording_host {
  std::vector<std::string> lines;
  ccbox_host table{};
  recording_host() {
    table.size = sizeof table;
    table.ctx = this;
    table.log = [](void* ctx, ccbox_level, ccbox_str text) {
      static_cast<recording_host*>(ctx)->lines.emplace_back(text.ptr, text.len);
    };
    table.emit = [](void*, ccbox_str, ccbox_str, ccbox_str) -> ccbox_status { return CCBOX_UNAVAILABLE; };
    table.get_extension = [](void*, ccbox_str) -> const void* { return nullptr; };
  }
};

std::string built(const std::string& name) {
  return CCBOX_TEST_BINARY_DIR "/tests/plugins/" + name + ".so";
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  REQUIRE(in.good());
  return out.str();
}

struct scene {
  test::temporary_directory directory;
  recording_host host;
  manifest_entry entry;

  // A copy of a built plugin in a directory that is ours alone.
  explicit scene(const std::string& plugin = "fake") {
    entry.where = "plugins.yaml:2:5";
    entry.path = directory.write("x.so", bytes_of(built(plugin)));
    REQUIRE(::chmod(entry.path.c_str(), 0644) == 0);
  }
  result<std::unique_ptr<loaded_plugin>> load() { return load_plugin(entry, host.table); }
  error refusal() {
    const auto loaded = load();
    REQUIRE_FALSE(loaded.has_value());
    return loaded.error();
  }
  std::string name() const { return "plugin " + ccbox::quoted(entry.path) + " "; }
};

// What the plugin's code answers: its version as it was compiled in.
std::string answer_of(const loaded_plugin& plugin) {
  const auto* table = static_cast<const ccbox_backend*>(plugin.get_extension(CCBOX_BACKEND_EXTENSION));
  REQUIRE(table);
  const backend b(plugin.name(), plugin.version(), plugin.instance(), table);
  const auto probe = b.probe(CCBOX_PROBE_FULL);
  const auto p = b.make_plan(policy{}, "/init");
  REQUIRE(probe);
  REQUIRE(p);
  CHECK(probe->note == "probed to the full");
  return p->argv.at(1);
}

}  // namespace

TEST_CASE("a plugin is loaded, created, answers, and is destroyed with its handle") {
  scene s;
  {
    const auto loaded = s.load();
    REQUIRE(loaded);
    const auto& plugin = **loaded;
    CHECK(plugin.name() == "fake");
    CHECK(plugin.version() == "1.0");
    CHECK(plugin.path() == s.entry.path);
    CHECK(plugin.abi_minor() == CCBOX_ABI_MINOR);
    CHECK(plugin.get_extension("ccbox.backend/9") == nullptr);
    CHECK(answer_of(plugin) == "1.0");
    CHECK(s.host.lines == std::vector<std::string>{"created"});
  }
  CHECK(s.host.lines == std::vector<std::string>{"created", "destroyed"});
}

TEST_CASE("options reach the plugin, and one that it refuses stops the load with its reason on one line") {
  scene s;
  s.entry.options = {{"available", "no"}};
  CHECK(s.load().has_value());
  s.entry.options = {{"avail", "no"}};
  const auto e = s.refusal();
  CHECK(e.code == error_code::invalid_argument);
  CHECK(e.what == s.name() + "cannot be created: unknown option\\n");
  CHECK(e.hint == "its options are at plugins.yaml:2:5");
}

TEST_CASE("a plugin goes on answering after its file was replaced, truncated and deleted") {
  scene s;
  const auto loaded = s.load();
  REQUIRE(loaded);
  s.directory.write("new.so", bytes_of(built("fake_other")));
  REQUIRE(::rename((s.directory / "new.so").c_str(), s.entry.path.c_str()) == 0);
  CHECK(answer_of(**loaded) == "1.0");
  REQUIRE(::truncate(s.entry.path.c_str(), 0) == 0);
  CHECK(answer_of(**loaded) == "1.0");
  REQUIRE(::unlink(s.entry.path.c_str()) == 0);
  CHECK(answer_of(**loaded) == "1.0");
}

TEST_CASE("a file that is cut and overwritten in place does not reach the loaded copy") {
  scene s;
  const auto loaded = s.load();
  REQUIRE(loaded);
  const auto size = fs::file_size(s.entry.path);
  s.directory.write("x.so", std::string(size, '\xcc'));
  CHECK(answer_of(**loaded) == "1.0");
}

TEST_CASE("the same path after a rename is the new code, also while the old one is loaded") {
  scene s;
  const auto old = s.load();
  REQUIRE(old);
  s.directory.write("new.so", bytes_of(built("fake_newer")));
  REQUIRE(::rename((s.directory / "new.so").c_str(), s.entry.path.c_str()) == 0);
  const auto fresh = s.load();
  REQUIRE(fresh);
  CHECK((*fresh)->version() == "2.0");
  CHECK(answer_of(**fresh) == "2.0");
  CHECK(answer_of(**old) == "1.0");
}

TEST_CASE("a plugin released and loaded again is the file of now, never a descriptor number of before") {
  scene s;
  for (const auto* version : {"1.0", "2.0", "1.0"}) {
    s.directory.write("x.so", bytes_of(built(std::string(version) == "1.0" ? "fake" : "fake_newer")));
    const auto loaded = s.load();
    REQUIRE(loaded);
    CHECK(answer_of(**loaded) == version);
  }
}

TEST_CASE("two instances of one plugin do not know of each other") {
  scene s;
  const auto first = s.load();
  auto second = s.load();
  REQUIRE(first);
  REQUIRE(second);
  CHECK((*first)->instance() != (*second)->instance());
  second->reset();
  CHECK(answer_of(**first) == "1.0");
}

TEST_CASE("the sha256 of the manifest decides before any code runs") {
  scene s;
  s.entry.sha256 = std::string(64, '0');
  const auto e = s.refusal();
  CHECK(e.code == error_code::permission_denied);
  const auto before = s.name() + "is not the file that the manifest means: its sha256 is ";
  REQUIRE(e.what.starts_with(before));
  CHECK(e.hint == "if the file is the right one, correct sha256 at plugins.yaml:2:5");
  s.entry.sha256 = e.what.substr(before.size());
  CHECK(s.entry.sha256->size() == 64);
  CHECK(s.load().has_value());
}

TEST_CASE("the digest is that of the bytes, as everybody computes it") {
  scene s;
  s.directory.write("x.so", "abc");
  s.entry.sha256 = std::string(64, '0');
  CHECK(s.refusal().what.ends_with("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
}

TEST_CASE("what is no regular file is refused, and a FIFO is never waited for") {
  scene s;
  REQUIRE(::unlink(s.entry.path.c_str()) == 0);
  CHECK(s.refusal().code == error_code::not_found);

  REQUIRE(::mkfifo(s.entry.path.c_str(), 0600) == 0);
  CHECK(s.refusal().what == s.name() + "is not a regular file");
  REQUIRE(::unlink(s.entry.path.c_str()) == 0);

  REQUIRE(::mkdir(s.entry.path.c_str(), 0700) == 0);
  CHECK(s.refusal().what == s.name() + "is not a regular file");
  REQUIRE(::rmdir(s.entry.path.c_str()) == 0);

  REQUIRE(::symlink(built("fake").c_str(), s.entry.path.c_str()) == 0);
  CHECK(s.refusal().what == s.name() + "is a symbolic link");
  REQUIRE(::unlink(s.entry.path.c_str()) == 0);

  const unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(s.entry.path.size() < sizeof address.sun_path);
  s.entry.path.copy(address.sun_path, sizeof address.sun_path);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(s.refusal().code == error_code::failed);

  s.entry.path = "/dev/null";
  CHECK(s.refusal().what == s.name() + "is not a regular file");
  s.entry.path = s.directory / "none/x.so";
  CHECK(s.refusal().code == error_code::not_found);
  s.entry.path = s.directory.path() + "/";
  CHECK(s.refusal().code == error_code::not_found);
}

TEST_CASE("an empty file is no plugin, and one that is too large is not read") {
  scene s;
  REQUIRE(::truncate(s.entry.path.c_str(), 0) == 0);
  CHECK(s.refusal().code == error_code::invalid_argument);
  REQUIRE(::truncate(s.entry.path.c_str(), (256 << 20) + 1) == 0);
  CHECK(s.refusal().code == error_code::too_large);
  CHECK(s.refusal().what == s.name() + "is larger than 256 MiB");
}

TEST_CASE("a file that others may write is refused with the remedy") {
  scene s;
  for (const mode_t mode : {0664, 0646, 0666, 0777}) {
    REQUIRE(::chmod(s.entry.path.c_str(), mode) == 0);
    const auto e = s.refusal();
    CHECK(e.code == error_code::permission_denied);
    CHECK(e.what == s.name() + "is not loaded: it may be written by group or others");
    CHECK(e.hint == "chmod go-w " + ccbox::quoted(s.entry.path));
  }
  REQUIRE(::chmod(s.entry.path.c_str(), 0755) == 0);
  CHECK(s.load().has_value());
}

TEST_CASE("a directory that others may write is refused, the sticky bit notwithstanding") {
  scene s;
  for (const mode_t mode : {0770, 0702, 0777, 01777}) {
    REQUIRE(::chmod(s.directory.path().c_str(), mode) == 0);
    CHECK(s.refusal().what == s.name() + "is not loaded: its directory " + ccbox::quoted(s.directory.path()) +
                                  " may be written by group or others");
  }
}

TEST_CASE("a file or a directory of another user is refused") {
  scene s;
  std::string owner = "12345";
  if (::geteuid() == 0) {
    REQUIRE(::chown(s.entry.path.c_str(), 12345, 12345) == 0);
    CHECK(s.refusal().what == s.name() + "is not loaded: it belongs to uid 12345");
    REQUIRE(::chown(s.entry.path.c_str(), 0, 0) == 0);
    REQUIRE(::chown(s.directory.path().c_str(), 12345, 12345) == 0);
  } else {
    // This user cannot give files away: let the loader think that it is somebody else.
    owner = std::to_string(::geteuid());
    os::test_hook = [](long number, const long(&)[6], long& answer) {
      answer = 54321;
      return number == SYS_geteuid;
    };
  }
  const auto e = s.refusal();
  os::test_hook = nullptr;
  CHECK(e.code == error_code::permission_denied);
  CHECK(e.what == s.name() + "is not loaded: its directory " + ccbox::quoted(s.directory.path()) +
                      " belongs to uid " + owner);
}

TEST_CASE("a plugin of the user who runs ccbox is good in a directory of root's, whoever the user is") {
  scene s;
  if (::geteuid() == 0) {
    REQUIRE(::chown(s.entry.path.c_str(), 54321, 54321) == 0);
    os::test_hook = [](long number, const long(&)[6], long& answer) {
      answer = 54321;
      return number == SYS_geteuid;
    };
  }
  const auto loaded = s.load();
  os::test_hook = nullptr;
  CHECK(loaded.has_value());
}

TEST_CASE("a file that is no shared object of this machine is refused by what it is") {
  scene s;
  const auto whole = bytes_of(s.entry.path);
  s.directory.write("x.so", "#!/bin/sh\necho hello\n");
  CHECK(s.refusal().what == s.name() + "is not an ELF file");
  s.directory.write("x.so", "");
  CHECK(s.refusal().what == s.name() + "is not an ELF file");
  auto narrow = whole;
  narrow[4] = 1;  // EI_CLASS: 32 bits
  s.directory.write("x.so", narrow);
  CHECK(s.refusal().what == s.name() + "is built for another kind of machine");
  s.directory.write("x.so", bytes_of("/proc/self/exe"));
  CHECK(s.refusal().code == error_code::invalid_argument);
}

TEST_CASE("a plugin that was cut short is refused, wherever it was cut") {
  scene s;
  const auto whole = bytes_of(s.entry.path);
  for (std::size_t length = 0; length < whole.size(); length += 997) {
    CAPTURE(length);
    s.directory.write("x.so", std::string_view(whole).substr(0, length));
    CHECK(s.refusal().code == error_code::invalid_argument);
  }
}

TEST_CASE("a shared object without the entry symbol is refused before it is loaded") {
  scene s("bad_no_symbol");
  const auto e = s.refusal();
  CHECK(e.code == error_code::invalid_argument);
  CHECK(e.what == s.name() + "does not export ccbox_plugin_v1");
  CHECK(e.hint == "a plugin of this ABI version exports exactly that symbol");
}

TEST_CASE("a plugin that the dynamic linker refuses is an error with its reason and the file's own name") {
  scene s("bad_import");
  const auto e = s.refusal();
  CHECK(e.code == error_code::failed);
  CHECK(e.what ==
        s.name() + "cannot be loaded: " + s.entry.path + ": undefined symbol: ccbox_nobody_defines_this");
}

TEST_CASE("a plugin built with a sanitizer that this program lacks is refused instead of ending it") {
  scene s("bad_sanitizer");
  const auto e = s.refusal();
  CHECK(e.code == error_code::unavailable);
  CHECK(e.what.starts_with(s.name() + "was built with a sanitizer that this ccbox was not built with"));
}

TEST_CASE("a descriptor that breaks the rules is refused with the rule") {
  const std::pair<std::string, std::string> cases[] = {
      {"bad_null_descriptor", "returns no descriptor"},
      {"bad_small_descriptor", "has a descriptor smaller than version 1.0"},
      {"bad_holes", "has a descriptor with holes"},
      {"bad_name", "calls itself 'Fake/../x'; a name is [a-z][a-z0-9_-]{0,31}"},
      {"bad_long_name", "calls itself 'a23456789012345678901234567890123'; a name is [a-z][a-z0-9_-]{0,31}"},
      {"bad_version", "has the version ''; a version is one short line"},
      {"bad_creates_nothing", "created nothing"},
      {"bad_silent_refusal", "cannot be created: status 2 and no reason"},
      {"bad_throws_in_descriptor", "cannot be asked what it is: an exception left the plugin"},
      {"bad_throws_in_create", "cannot be created: an exception left the plugin"},
  };
  for (const auto& [plugin, what] : cases) {
    scene s(plugin);
    CHECK(s.refusal().what == s.name() + what);
    CHECK(s.host.lines.empty());
  }
}

TEST_CASE("exceptions of a plugin's later functions end at the boundary") {
  scene extension("bad_throws_in_get_extension");
  const auto first = extension.load();
  REQUIRE(first);
  CHECK((*first)->get_extension(CCBOX_BACKEND_EXTENSION) == nullptr);
  scene destruction("bad_throws_in_destroy");
  auto second = destruction.load();
  REQUIRE(second);
  second->reset();
}

TEST_CASE("whichever system call fails, the load is an error and leaves no descriptor behind") {
  scene s;
  REQUIRE(s.load().has_value());  // what the first load keeps for ever is not counted
  int calls = 0;
  {
    const test::failing_call counted(0);
    REQUIRE(s.load().has_value());
    calls = counted.calls();
  }
  REQUIRE(calls > 5);
  for (int n = 1; n <= calls; ++n) {
    CAPTURE(n);
    const auto before = test::take_footprint();
    {
      const test::failing_call failing(n, EIO);
      const auto loaded = s.load();
      CHECK(failing.reached());
      CHECK(loaded.has_error());
    }
    CHECK(test::take_footprint() == before);
  }
}

TEST_CASE("a plugin of any file name is loaded, and named so that a terminal is safe") {
  scene s;
  const auto odd = s.directory / ("a b\n\x1b[31m*?'\xff" + std::string(200, 'x') + ".so");
  REQUIRE(::rename(s.entry.path.c_str(), odd.c_str()) == 0);
  s.entry.path = odd;
  CHECK(s.load().has_value());
  REQUIRE(::chmod(odd.c_str(), 0666) == 0);
  const auto e = s.refusal();
  CHECK(e.what.find('\n') == std::string::npos);
  CHECK(e.what.find('\x1b') == std::string::npos);
}
