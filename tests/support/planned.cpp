#include "support/planned.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace ccbox::test {

namespace {

ccbox_str borrowed(const std::string& text) {
  return {text.data(), text.size()};
}
std::string copied(ccbox_str text) {
  return text.len ? std::string(text.ptr, text.len) : std::string();
}

struct text_buffer {
  std::array<char, 4096> bytes{};
  ccbox_text text{bytes.data(), bytes.size(), 0};
  std::string value() const { return {text.ptr, text.length}; }
};

// Refuses nothing and hosts nothing: what a plugin logs goes nowhere.
const ccbox_host quiet_host = {
    sizeof(ccbox_host),
    CCBOX_ABI_MINOR,
    nullptr,
    [](void*, ccbox_level, ccbox_str) {},
    [](void*, ccbox_str, ccbox_str, ccbox_str) -> ccbox_status { return CCBOX_OK; },
    [](void*, ccbox_str) -> const void* { return nullptr; }};

int next_number(const plan& p) {
  return plan::first_file_fd + static_cast<int>(p.files.size() + p.paths.size());
}

ccbox_plan_sink recorder(plan& into) {
  ccbox_plan_sink sink{};
  sink.size = sizeof sink;
  sink.ctx = &into;
  sink.argument = [](void* ctx, ccbox_str text) { static_cast<plan*>(ctx)->argv.push_back(copied(text)); };
  sink.environment = [](void* ctx, ccbox_str name, ccbox_str value) {
    static_cast<plan*>(ctx)->env.emplace_back(copied(name), copied(value));
  };
  sink.file = [](void* ctx, ccbox_str label, ccbox_str bytes) -> std::int32_t {
    auto& p = *static_cast<plan*>(ctx);
    p.files.push_back({next_number(p), copied(label), copied(bytes)});
    return p.files.back().number;
  };
  sink.open_path = [](void* ctx, ccbox_str host_path) -> std::int32_t {
    auto& p = *static_cast<plan*>(ctx);
    p.paths.push_back({next_number(p), copied(host_path)});
    return p.paths.back().number;
  };
  sink.layer = [](void* ctx, std::size_t index, ccbox_str text) {
    static_cast<plan*>(ctx)->layers.at(index) = copied(text);
  };
  sink.enforces = [](void* ctx, std::uint64_t bits) { static_cast<plan*>(ctx)->enforced = bits; };
  sink.flags = [](void* ctx, std::uint32_t flags) {
    static_cast<plan*>(ctx)->identity_userns = (flags & CCBOX_PLAN_IDENTITY_USERNS) != 0;
    static_cast<plan*>(ctx)->unconfined = (flags & CCBOX_PLAN_UNCONFINED) != 0;
  };
  return sink;
}

}  // namespace

planned_rule mount_rule(const std::string& path, std::uint32_t flags, const std::string& guest) {
  return {CCBOX_KIND_MOUNT, flags, CCBOX_RULE_FS_BINDS_ONLY, path, guest.empty() ? path : guest};
}
planned_rule read_deny_rule(const std::string& path, std::uint32_t flags) {
  return {CCBOX_KIND_READ_DENY, flags, CCBOX_RULE_FS_READ_DENY, path, path};
}
planned_rule write_deny_rule(const std::string& path, std::uint32_t flags) {
  return {CCBOX_KIND_WRITE_DENY, flags, CCBOX_RULE_FS_WRITE_DENY, path, path};
}

planned_rule as_found(planned_rule rule) {
  rule.flags &= ~static_cast<std::uint32_t>(CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY | CCBOX_RULE_SYMLINK);
  struct stat status {};
  if (::lstat(rule.path.c_str(), &status) == 0) rule.flags |= CCBOX_RULE_EXISTS;
  if (S_ISDIR(status.st_mode)) rule.flags |= CCBOX_RULE_DIRECTORY;
  // A link at the end or on the way: the resolved spelling is another.
  if (char* resolved = ::realpath(rule.path.c_str(), nullptr)) {
    if (rule.path != resolved) rule.flags |= CCBOX_RULE_SYMLINK;
    ::free(resolved);
  } else if (S_ISLNK(status.st_mode)) {
    rule.flags |= CCBOX_RULE_SYMLINK;
  }
  return rule;
}

built_plugin::built_plugin(const std::string& name, const option_list& options) {
  const auto file = std::string(CCBOX_TEST_BINARY_DIR "/plugins/") + name + ".so";
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(::dlerror());
  const auto entry = reinterpret_cast<ccbox_plugin_entry>(::dlsym(library, "ccbox_plugin_v1"));
  if (!entry) throw std::runtime_error(file + " has no entry");
  descriptor_ = entry();
  std::vector<ccbox_option> given;
  for (const auto& [key, value] : options)
    given.push_back({borrowed(key), borrowed(value)});
  const ccbox_config config = {sizeof config, sizeof(ccbox_option), given.data(), given.size()};
  text_buffer error;
  if (descriptor_->create(&quiet_host, &config, &plugin_, &error.text) != CCBOX_OK)
    throw std::runtime_error(error.value());
  static const std::string extension = CCBOX_BACKEND_EXTENSION;
  backend_ = static_cast<const ccbox_backend*>(descriptor_->get_extension(plugin_, borrowed(extension)));
}

built_plugin::~built_plugin() {
  descriptor_->destroy(plugin_);
}

std::string built_plugin::kind() const {
  return copied(backend_->kind);
}

planned_answer built_plugin::ask(const planned_request& asked) const {
  std::vector<ccbox_rule> rules;
  for (const auto& r : asked.rules)
    rules.push_back({r.kind, r.flags, r.bit, borrowed(r.path), borrowed(r.guest_path), {}});
  ccbox_plan_request request{};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_rule);
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.required = asked.required;
  request.waived = asked.waived;
  request.workdir = borrowed(asked.workdir);
  request.home = borrowed(asked.home);
  request.tmpdir = borrowed(asked.tmpdir);
  request.network = asked.network;
  request.uid = asked.uid;
  request.gid = asked.gid;
  request.channel_fd = plan::channel_fd;
  request.init_fd = plan::init_fd;
  request.init_path = borrowed(asked.init_path);
  planned_answer answer;
  answer.planned.plugin = copied(descriptor_->name);
  answer.planned.kind = kind();
  answer.planned.layers.resize(rules.size());
  const auto sink = recorder(answer.planned);
  text_buffer error;
  answer.status = backend_->plan(plugin_, &request, &sink, &error.text);
  answer.error = error.value();
  return answer;
}

built_plugin::probed built_plugin::probe(ccbox_probe_depth depth, const std::string& init_path) const {
  text_buffer note, hint, cause, error;
  ccbox_probe_result result{};
  result.size = sizeof result;
  result.note = note.text;
  result.hint = hint.text;
  result.cause = cause.text;
  const ccbox_probe_request request = {sizeof request, depth, borrowed(init_path)};
  probed answer;
  answer.status = backend_->probe(plugin_, &request, &result, &error.text);
  answer.available = result.available != 0;
  answer.requires_install = result.requires_install != 0;
  answer.enforced = result.enforced;
  answer.note.assign(result.note.ptr, result.note.length);
  answer.hint.assign(result.hint.ptr, result.hint.length);
  answer.cause.assign(result.cause.ptr, result.cause.length);
  answer.error = error.value();
  return answer;
}

std::vector<std::string> bwrap_arguments(const plan& p) {
  std::vector<std::string> words;
  for (const auto& file : p.files) {
    if (file.label != "bwrap-args") continue;
    for (std::size_t at = 0; at < file.bytes.size();) {
      const auto end = file.bytes.find('\0', at);
      words.push_back(file.bytes.substr(at, end - at));
      at = end + 1;
    }
  }
  return words;
}

}  // namespace ccbox::test
