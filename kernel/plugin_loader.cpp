#include "plugin_loader.hpp"

#include <dlfcn.h>
#include <fcntl.h>
// The digest itself, without the machinery that looks for an implementation: that would be half of this
// program.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <utility>
#include <vector>

#include "exported_symbols.hpp"
#include "os.hpp"
#include "plugin_call.hpp"
#include "process.hpp"
#include "trusted_file.hpp"
#include "unique_fd.hpp"
#include "utf8.hpp"

namespace ccbox {

struct loaded_plugin::impl {
  std::string path, name, version;
  const ccbox_plugin_descriptor* descriptor = nullptr;
  ccbox_plugin* instance = nullptr;
};

namespace {

constexpr std::size_t max_plugin_bytes = 256 << 20;
constexpr const char* entry_symbol = "ccbox_plugin_v1";

error plugin_error(const std::string& path, error_code code, std::string_view what, std::string hint = {}) {
  return {code, "plugin " + ccbox::quoted(path) + " " + std::string(what), std::move(hint)};
}

error too_large(const std::string& path) {
  return plugin_error(path, error_code::too_large, "is larger than 256 MiB");
}

// What the file is now, for good.
result<unique_fd> copy_plugin(const std::string& path, int file) {
  struct stat status {};
  if (os::call(SYS_fstat, file, &status) != 0) return system_error("fstat", path, errno);
  if (static_cast<std::size_t>(status.st_size) > max_plugin_bytes) return too_large(path);
  const auto name = std::filesystem::path(path).filename().string().substr(0, 64);
  return sealed_copy(name, file, max_plugin_bytes + 1);
}

// The bytes of a sealed copy, in place.
class mapped_bytes {
 public:
  mapped_bytes() = default;
  mapped_bytes(void* begin, std::size_t size) : begin_(begin), size_(size) {}
  mapped_bytes(mapped_bytes&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapped_bytes& operator=(mapped_bytes&&) = delete;
  ~mapped_bytes() {
    if (begin_) ::munmap(begin_, size_);
  }
  std::string_view view() const { return {static_cast<const char*>(begin_), size_}; }

 private:
  void* begin_ = nullptr;
  std::size_t size_ = 0;
};

result<mapped_bytes> map_copy(const std::string& path, int copy) {
  struct stat status {};
  if (os::call(SYS_fstat, copy, &status) != 0) return system_error("fstat", path, errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > max_plugin_bytes) return too_large(path);  // it grew while it was copied
  if (size == 0) return mapped_bytes();
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, copy, 0);
  if (begin == MAP_FAILED) return system_error("map", path, errno);
  return mapped_bytes(begin, size);
}

result<std::string> sha256_of(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256_CTX context;
  if (SHA256_Init(&context) != 1 || SHA256_Update(&context, bytes.data(), bytes.size()) != 1 ||
      SHA256_Final(digest.data(), &context) != 1)
    return error{error_code::failed, "OpenSSL cannot compute SHA-256", {}};
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : digest)
    (out += hex[byte >> 4]) += hex[byte & 15];
  return out;
}

// A sanitizer's runtime that arrives with a plugin ends the process instead of failing the load.
result<void> check_sanitizers(const std::string& path, std::string_view bytes) {
  const auto wanted = imported_symbols(bytes, path);
  if (!wanted) return wanted.error();
  for (const char* start : {"__asan_init", "__hwasan_init", "__msan_init", "__tsan_init"})
    if (std::binary_search(wanted->begin(), wanted->end(), start) && !::dlsym(RTLD_DEFAULT, start))
      return plugin_error(
          path, error_code::unavailable,
          "was built with a sanitizer that this ccbox was not built with (" + std::string(start) + ")",
          "rebuild the plugin without -fsanitize, or ccbox with the same one");
  return {};
}

// The checks that need the bytes only: none of the plugin's code has run when they fail.
result<void> check_bytes(const manifest_entry& entry, std::string_view bytes) {
  if (entry.sha256) {
    const auto found = sha256_of(bytes);
    if (!found) return found.error();
    if (*found != *entry.sha256)
      return plugin_error(entry.path, error_code::permission_denied,
                          "is not the file that the manifest means: its sha256 is " + *found,
                          "if the file is the right one, correct sha256 at " + entry.where);
  }
  const auto exported = exported_symbols(bytes, entry.path);
  if (!exported) return exported.error();
  if (!std::binary_search(exported->begin(), exported->end(), entry_symbol))
    return plugin_error(entry.path, error_code::invalid_argument,
                        std::string("does not export ") + entry_symbol,
                        "a plugin of this ABI version exports exactly that symbol");
  return check_sanitizers(entry.path, bytes);
}

std::string loader_message(const std::string& path, const std::string& own_name, std::string text) {
  // Boost wraps what the dynamic linker said; the linker names the copy, people know the file.
  constexpr std::string_view before = "dlerror system message: ";
  if (const auto at = text.find(before); at != std::string::npos) {
    text.erase(0, at + before.size());
    text.erase(std::min(text.rfind(')'), text.size()));
  }
  for (std::size_t at = 0; (at = text.find(own_name, at)) != std::string::npos; at += path.size())
    text.replace(at, own_name.size(), path);
  return printable(text);
}

// Loads the copy. The library and its descriptor stay for the life of the process, also when the plugin turns
// out to be unusable: its code may have left pointers to itself anywhere.
result<ccbox_plugin_entry> load_copy(const std::string& path, unique_fd copy) {
  const auto own_name = "/proc/self/fd/" + std::to_string(copy.get());
  try {
    auto library = std::make_unique<boost::dll::shared_library>(
        own_name, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    copy.release();
    static auto& kept = *new std::vector<std::unique_ptr<boost::dll::shared_library>>;
    kept.push_back(std::move(library));
    return &kept.back()->get<const ccbox_plugin_descriptor*()>(entry_symbol);
  } catch (const std::exception& e) {
    return plugin_error(path, error_code::failed,
                        "cannot be loaded: " + loader_message(path, own_name, e.what()),
                        "install what it needs; `ldd` lists it");
  }
}

bool is_plugin_name(std::string_view name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 32 && is_lower(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

result<void> check_descriptor(const std::string& path, const ccbox_plugin_descriptor* descriptor) {
  const auto bad = [&](std::string_view what) {
    return plugin_error(path, error_code::failed, what, "report it to the plugin's author");
  };
  if (!descriptor) return bad("returns no descriptor");
  if (!CCBOX_HAS(descriptor, ccbox_plugin_descriptor, get_extension))
    return bad("has a descriptor smaller than version 1.0");
  if (!descriptor->create || !descriptor->destroy || !descriptor->get_extension)
    return bad("has a descriptor with holes");
  const auto text_of = [](ccbox_str s) {
    return s.ptr ? std::string_view(s.ptr, std::min<std::size_t>(s.len, 256)) : std::string_view();
  };
  const auto name = text_of(descriptor->name), version = text_of(descriptor->version);
  if (!is_plugin_name(name))
    return bad("calls itself " + ccbox::quoted(name) + "; a name is [a-z][a-z0-9_-]{0,31}");
  if (version.empty() || version.size() > 64 || !is_utf8(version) || printable(version) != version)
    return bad("has the version " + ccbox::quoted(version) + "; a version is one short line");
  return {};
}

result<ccbox_plugin*> create_instance(const manifest_entry& entry, const ccbox_plugin_descriptor& descriptor,
                                      const ccbox_host& host) {
  std::vector<ccbox_option> options;
  options.reserve(entry.options.size());
  for (const auto& [key, value] : entry.options)
    options.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
  const ccbox_config config{sizeof config, sizeof(ccbox_option), options.data(), options.size()};
  ccbox_plugin* instance = nullptr;
  text_buffer text;
  const auto status =
      call_plugin([&] { return descriptor.create(&host, &config, &instance, text.raw()); }, text);
  if (status != CCBOX_OK) {
    auto reason = printable(text.view());
    if (reason.empty()) reason = "status " + std::to_string(status) + " and no reason";
    return plugin_error(entry.path, to_error_code(status), "cannot be created: " + reason,
                        entry.options.empty() ? "" : "its options are at " + entry.where);
  }
  if (!instance)
    return plugin_error(entry.path, error_code::failed, "created nothing", "report it to its author");
  return instance;
}

}  // namespace

loaded_plugin::loaded_plugin() : impl_(std::make_unique<impl>()) {}

loaded_plugin::~loaded_plugin() {
  if (!impl_->instance) return;
  text_buffer ignored;
  call_plugin(
      [&] {
        impl_->descriptor->destroy(impl_->instance);
        return ccbox_status{CCBOX_OK};
      },
      ignored);
}

const std::string& loaded_plugin::name() const {
  return impl_->name;
}
const std::string& loaded_plugin::version() const {
  return impl_->version;
}
const std::string& loaded_plugin::path() const {
  return impl_->path;
}
std::uint32_t loaded_plugin::abi_minor() const {
  return impl_->descriptor->abi_minor;
}
ccbox_plugin* loaded_plugin::instance() const {
  return impl_->instance;
}

const void* loaded_plugin::get_extension(std::string_view name) const {
  const void* found = nullptr;
  text_buffer ignored;
  call_plugin(
      [&] {
        found = impl_->descriptor->get_extension(impl_->instance, {name.data(), name.size()});
        return ccbox_status{CCBOX_OK};
      },
      ignored);
  return found;
}

result<std::unique_ptr<loaded_plugin>> load_plugin(const manifest_entry& entry, const ccbox_host& host) {
  auto file = open_trusted_file("plugin", entry.path);
  if (!file) return file.error();
  auto copy = copy_plugin(entry.path, file->get());
  if (!copy) return copy.error();
  // From here on the file does not matter any more.
  {
    const auto bytes = map_copy(entry.path, copy->get());
    if (!bytes) return bytes.error();
    if (auto good = check_bytes(entry, bytes->view()); !good) return good.error();
  }
  const auto entry_point = load_copy(entry.path, std::move(*copy));
  if (!entry_point) return entry_point.error();

  const ccbox_plugin_descriptor* descriptor = nullptr;
  text_buffer text;
  const auto status = call_plugin(
      [&] {
        descriptor = (*entry_point)();
        return ccbox_status{CCBOX_OK};
      },
      text);
  if (status != CCBOX_OK)
    return plugin_error(entry.path, error_code::failed,
                        "cannot be asked what it is: " + printable(text.view()));
  if (auto good = check_descriptor(entry.path, descriptor); !good) return good.error();
  auto instance = create_instance(entry, *descriptor, host);
  if (!instance) return instance.error();

  std::unique_ptr<loaded_plugin> loaded(new loaded_plugin);
  loaded->impl_->path = entry.path;
  loaded->impl_->name = std::string(descriptor->name.ptr, descriptor->name.len);
  loaded->impl_->version = std::string(descriptor->version.ptr, descriptor->version.len);
  loaded->impl_->descriptor = descriptor;
  loaded->impl_->instance = *instance;
  return loaded;
}

}  // namespace ccbox
