#include "contract_subject.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "paths.hpp"
#include "plan_collector.hpp"
#include "result.hpp"
#include "rule_bits.hpp"
#include "utf8.hpp"

namespace ccbox::contract {
namespace {

constexpr std::size_t canary_bytes = 64;
constexpr char canary = '\xa5';

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::string copied(ccbox_str text) {
  return text.len ? std::string(text.ptr, text.len) : std::string();
}

recorded_plan& record(void* ctx) {
  return *static_cast<recorded_plan*>(ctx);
}

// The numbers that files and paths get, one sequence as in the real host.
std::int32_t next_number(const recorded_plan& plan) {
  return 5 + static_cast<std::int32_t>(plan.files.size() + plan.paths.size() + plan.denials);
}

void sink_argument(void* ctx, ccbox_str text) {
  record(ctx).argv.push_back(copied(text));
}
void sink_environment(void* ctx, ccbox_str name, ccbox_str value) {
  record(ctx).env.emplace_back(copied(name), copied(value));
}
std::int32_t sink_file(void* ctx, ccbox_str label, ccbox_str bytes) {
  const auto number = next_number(record(ctx));
  record(ctx).files.emplace_back(copied(label), copied(bytes));
  return number;
}
std::int32_t sink_open_path(void* ctx, ccbox_str host_path) {
  const auto number = next_number(record(ctx));
  record(ctx).paths.push_back(copied(host_path));
  return number;
}
void sink_layer(void* ctx, std::size_t index, ccbox_str text) {
  record(ctx).layers[index] = copied(text);
}
void sink_enforces(void* ctx, std::uint64_t bits) {
  record(ctx).enforced = bits;
  ++record(ctx).enforces_calls;
}
void sink_flags(void* ctx, std::uint32_t flags) {
  record(ctx).flags |= flags;
}

std::int32_t sink_denials(void* ctx) {
  const auto number = next_number(record(ctx));
  ++record(ctx).denials;
  return number;
}

// The host's own collector judges the plan too: what it would refuse at a launch is a broken promise here.
void replay_to_host(const recorded_plan& recorded, std::size_t rule_count) {
  const auto str = [](const std::string& text) { return ccbox_str{text.data(), text.size()}; };
  plan_collector host(rule_count);
  const auto* sink = host.sink();
  for (const auto& argument : recorded.argv)
    sink->argument(sink->ctx, str(argument));
  for (const auto& [name, value] : recorded.env)
    sink->environment(sink->ctx, str(name), str(value));
  for (const auto& [label, bytes] : recorded.files)
    sink->file(sink->ctx, str(label), str(bytes));
  for (const auto& path : recorded.paths)
    sink->open_path(sink->ctx, str(path));
  for (unsigned n = 0; n < recorded.denials; ++n)
    sink->denials(sink->ctx);
  for (const auto& [index, text] : recorded.layers)
    sink->layer(sink->ctx, index, str(text));
  sink->flags(sink->ctx, recorded.flags);
  for (unsigned n = 0; n < recorded.enforces_calls; ++n)
    sink->enforces(sink->ctx, recorded.enforced);
  const auto taken = host.take();
  expect(taken.has_value(), "the host refuses the plan: " + (taken ? std::string() : taken.error().what));
}

// What holds for every answer to every request.
void check_answer(const plan_answer& answer, const plan_input& input, std::string_view kind,
                  std::size_t error_capacity) {
  if (!answer.ok()) {
    expect(answer.status >= CCBOX_INVALID && answer.status <= CCBOX_TOO_LARGE,
           "plan returned " + status_name(answer.status) + ", which is no ccbox_status");
    expect(error_capacity == 0 || !answer.error.empty(),
           "plan returned " + status_name(answer.status) + " without an error text");
    return;
  }
  const auto& plan = answer.plan;
  replay_to_host(plan, input.rules.size());
  expect((plan.enforced & ~known_rule_bits()) == 0, "plan claims " +
                                                        join_rule_bits(plan.enforced & ~known_rule_bits()) +
                                                        ", which this ABI version does not know");
  if (plan.flags & CCBOX_PLAN_UNCONFINED) {
    expect(kind == "none",
           "a plan without a boundary is for kind none, and this is kind " + std::string(kind));
    expect((plan.enforced & ~CCBOX_RULE_RESOURCE_LIMITS) == 0,
           "plan says that it has no boundary and claims " +
               join_rule_bits(plan.enforced & ~CCBOX_RULE_RESOURCE_LIMITS));
  }
  expect(!(plan.flags & CCBOX_PLAN_IDENTITY_USERNS) || ::geteuid() == 0,
         "plan asks for an identity user namespace, and the caller is not root");
  for (const auto& [index, text] : plan.layers)
    expect(!text.empty(), "plan named an empty layer for rule " + std::to_string(index));
  if (kind == "microvm") return;  // its init starts inside the machine
  auto n = plan.argv.size();
  if (n >= 7 && plan.argv[n - 4] == "--floor" && plan.argv[n - 2] == "--broker") n -= 4;
  expect(n >= 3 && plan.argv[n - 2] == "--channel" && plan.argv[n - 1] == std::to_string(input.channel_fd),
         "argv does not end in running ccbox-init with `--channel " + std::to_string(input.channel_fd) +
             "`, or that and `--floor F --broker B`");
}

}  // namespace

void expect(bool kept, const std::string& reason) {
  if (!kept) throw violation{reason};
}

std::string status_name(ccbox_status status) {
  switch (status) {
    case CCBOX_OK:
      return "CCBOX_OK";
    case CCBOX_INVALID:
      return "CCBOX_INVALID";
    case CCBOX_UNAVAILABLE:
      return "CCBOX_UNAVAILABLE";
    case CCBOX_UNENFORCEABLE:
      return "CCBOX_UNENFORCEABLE";
    case CCBOX_FAILED:
      return "CCBOX_FAILED";
    case CCBOX_TOO_LARGE:
      return "CCBOX_TOO_LARGE";
    default:
      return "status " + std::to_string(status);
  }
}

// ---- guarded memory

void* guarded_memory::map(std::size_t size, std::size_t& mapped) {
  const auto page = page_bytes();
  mapped = (size + page - 1) / page * page;
  void* start = ::mmap(nullptr, mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED || (mapped && ::mprotect(start, mapped, PROT_READ | PROT_WRITE) != 0))
    throw std::runtime_error("the suite has no memory left");
  regions_.emplace_back(start, mapped);
  return start;
}

guarded_memory::~guarded_memory() {
  for (const auto& [start, size] : regions_) {
    if (!never_reuse_) {
      ::munmap(start, size + page_bytes());
      continue;
    }
    ::madvise(start, size, MADV_DONTNEED);
    ::mprotect(start, size, PROT_NONE);
  }
}

void* guarded_memory::reserve(std::size_t size) {
  const std::size_t rounded = (size + 7) / 8 * 8;
  std::size_t mapped = 0;
  char* start = static_cast<char*>(map(rounded, mapped));
  char* out = start + (mapped - rounded);
  std::memset(out, 0xff, rounded);
  return out;
}

ccbox_str guarded_memory::text(std::string_view bytes) {
  std::size_t mapped = 0;
  char* out = static_cast<char*>(map(bytes.size(), mapped)) + (mapped - bytes.size());
  std::copy(bytes.begin(), bytes.end(), out);
  return {out, bytes.size()};
}

ccbox_str guarded_memory::bulk_text(std::string_view bytes) {
  if (bulk_left_ < bytes.size()) {
    constexpr std::size_t chunk = std::size_t{4} << 20;
    bulk_ = static_cast<char*>(map(std::max(chunk, bytes.size()), bulk_left_));
  }
  char* out = bulk_;
  std::copy(bytes.begin(), bytes.end(), out);
  bulk_ += bytes.size();
  bulk_left_ -= bytes.size();
  return {out, bytes.size()};
}

// ---- text buffers

text_buffer::text_buffer(std::size_t capacity) : bytes_(capacity + canary_bytes, canary) {
  text_ = {capacity ? bytes_.data() : nullptr, capacity, 0};
}

std::string text_buffer::take(const std::string& who) const {
  expect(text_.length <= text_.capacity, who + " claims " + std::to_string(text_.length) +
                                             " bytes of text in a buffer of " +
                                             std::to_string(text_.capacity));
  expect(std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(text_.capacity), bytes_.end(),
                     [](char c) { return c == canary; }),
         who + " wrote beyond the capacity of its text buffer");
  std::string out(bytes_.data(), text_.length);
  expect(std::none_of(out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }),
         who + " wrote control characters into a text for people: " + quoted(out) + "; quote what it names");
  return out;
}

// ---- create and destroy

const ccbox_host& quiet_host() {
  static const ccbox_host host = {
      sizeof(ccbox_host),
      CCBOX_ABI_MINOR,
      nullptr,
      [](void*, ccbox_level, ccbox_str) {},
      [](void*, ccbox_str, ccbox_str, ccbox_str) -> ccbox_status { return CCBOX_OK; },
      [](void*, ccbox_str) -> const void* { return nullptr; },
  };
  return host;
}

create_answer create_plugin(const subject& s, const std::vector<std::pair<std::string, std::string>>& options,
                            std::uint32_t stride_extra, std::size_t error_capacity) {
  guarded_memory memory;
  const std::size_t stride = sizeof(ccbox_option) + stride_extra;
  auto* table = static_cast<char*>(memory.reserve(options.size() * stride));
  for (std::size_t i = 0; i < options.size(); ++i) {
    const ccbox_option option = {memory.text(options[i].first), memory.text(options[i].second)};
    std::memcpy(table + i * stride, &option, sizeof option);
  }
  auto* config = static_cast<ccbox_config*>(memory.reserve(sizeof(ccbox_config)));
  *config = {sizeof(ccbox_config), static_cast<std::uint32_t>(stride),
             options.empty() ? nullptr : reinterpret_cast<const ccbox_option*>(table), options.size()};
  text_buffer error(error_capacity);
  create_answer answer{CCBOX_OK, nullptr, {}};
  answer.status = s.descriptor->create(&quiet_host(), config, &answer.plugin, &error.text());
  if (answer.status != CCBOX_OK) {
    answer.error = error.take("create");
    expect(error_capacity == 0 || !answer.error.empty(),
           "create returned " + status_name(answer.status) + " without an error text");
    expect(answer.plugin == nullptr, "create failed and still returned an instance");
  }
  return answer;
}

instance::instance(const subject& s) : subject_(s) {
  auto answer = create_plugin(s, s.options);
  if (answer.status != CCBOX_OK)
    throw create_refused{{"create returned " + status_name(answer.status) + ": " + answer.error}};
  plugin_ = answer.plugin;
  guarded_memory memory;
  backend_ = static_cast<const ccbox_backend*>(
      s.descriptor->get_extension(plugin_, memory.text(CCBOX_BACKEND_EXTENSION)));
}

const ccbox_backend* instance::backend() const {
  if (!backend_) throw not_applicable{"the plugin is no backend"};
  return backend_;
}

instance::~instance() {
  subject_.descriptor->destroy(plugin_);
}

// ---- probe

probe_answer ask_probe(const instance& i, ccbox_probe_depth depth, std::size_t capacity) {
  guarded_memory memory;
  auto* request = static_cast<ccbox_probe_request*>(memory.reserve(sizeof(ccbox_probe_request)));
  const auto parts = find_installation();
  *request = {sizeof(ccbox_probe_request), depth, memory.text(parts ? parts->init : "")};
  text_buffer note(capacity), hint(capacity), cause(capacity), error(512);
  ccbox_probe_result result = {};
  result.size = sizeof result;
  result.note = note.text();
  result.hint = hint.text();
  result.cause = cause.text();
  probe_answer answer;
  answer.status = i.backend()->probe(i.get(), request, &result, &error.text());
  note.text() = result.note;
  hint.text() = result.hint;
  cause.text() = result.cause;
  answer.note = note.take("probe (note)");
  answer.hint = hint.take("probe (hint)");
  answer.cause = cause.take("probe (cause)");
  for (const auto* text : {&answer.note, &answer.hint, &answer.cause})
    expect(is_utf8(*text), "probe answers a text that is no UTF-8: " + quoted(*text));
  if (answer.status != CCBOX_OK) {
    answer.error = error.take("probe");
    expect(!answer.error.empty(), "probe returned " + status_name(answer.status) + " without an error text");
    return answer;
  }
  expect(result.available <= 1 && result.requires_install <= 1, "probe answers something other than 0 or 1");
  answer.available = result.available == 1;
  answer.requires_install = result.requires_install;
  answer.enforced = result.enforced;
  return answer;
}

// ---- plan

std::vector<std::string_view> recorded_plan::texts() const {
  std::vector<std::string_view> out(argv.begin(), argv.end());
  out.insert(out.end(), paths.begin(), paths.end());
  for (const auto& [name, value] : env)
    out.insert(out.end(), {name, value});
  for (const auto& [label, bytes] : files)
    out.emplace_back(bytes);
  return out;
}

plan_input ordinary_input(const subject& s) {
  const std::string work = s.directory + "/tree";
  constexpr auto directory = CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY;
  plan_input in;
  in.rules = {
      {CCBOX_KIND_MOUNT, directory | CCBOX_RULE_READ_ONLY | CCBOX_RULE_SYSTEM, CCBOX_RULE_FS_BINDS_ONLY,
       "/usr", "/usr", "system: programs and libraries"},
      {CCBOX_KIND_MOUNT, directory, CCBOX_RULE_FS_BINDS_ONLY, work, work, "mount of the spec"},
      {CCBOX_KIND_READ_DENY, CCBOX_RULE_EXISTS, CCBOX_RULE_FS_READ_DENY, work + "/secret", work + "/secret",
       "secret"},
      {CCBOX_KIND_WRITE_DENY, directory, CCBOX_RULE_FS_WRITE_DENY, work + "/.git/hooks", work + "/.git/hooks",
       "mandatory deny: git runs what is in hooks"},
      {CCBOX_KIND_NAME_DENY, CCBOX_RULE_GLOB, CCBOX_RULE_FS_NAME_DENY, "**/*.pem", work, "name of a key"},
      {CCBOX_KIND_NAME_EXEMPT, CCBOX_RULE_GLOB, CCBOX_RULE_FS_NAME_DENY, "**/.git/hooks/*.sample", work,
       "git init"},
      {CCBOX_KIND_EXEC_DENY, CCBOX_RULE_EXISTS, CCBOX_RULE_EXEC_DENY, "/usr/bin/env", "/usr/bin/env",
       "always dangerous"},
  };
  in.session_id = "contract-1";
  in.workdir = work;
  in.home = "/run/ccbox/home";
  in.tmpdir = "/tmp";
  in.init_path = s.directory + "/ccbox-init";
  return in;
}

plan_question::plan_question(const plan_input& input, const plan_shape& shape)
    : input_(input), shape_(shape) {
  const bool bulk = input.rules.size() > 200;
  const auto text = [&](const std::string& bytes) {
    return bulk ? memory_.bulk_text(bytes) : memory_.text(bytes);
  };
  const std::size_t stride = sizeof(ccbox_rule) + shape.stride_extra;
  auto* rules = static_cast<char*>(memory_.reserve(input.rules.size() * stride));
  for (std::size_t i = 0; i < input.rules.size(); ++i) {
    const auto& in = input.rules[i];
    const ccbox_rule rule = {in.kind, in.flags, in.bit, text(in.path), text(in.guest_path), text(in.reason)};
    std::memcpy(rules + i * stride, &rule, sizeof rule);
  }
  ccbox_plan_request request = {};
  request.size = shape.request_size.value_or(sizeof request + shape.request_extra);
  request.rule_stride = static_cast<std::uint32_t>(stride);
  request.rules = input.rules.empty() ? nullptr : reinterpret_cast<const ccbox_rule*>(rules);
  request.rule_count = input.rules.size();
  request.required = input.required;
  request.waived = input.waived;
  request.session_id = memory_.text(input.session_id);
  request.workdir = memory_.text(input.workdir);
  request.home = memory_.text(input.home);
  request.tmpdir = memory_.text(input.tmpdir);
  request.network = input.network;
  request.uid = ::geteuid();
  request.gid = ::getegid();
  request.channel_fd = input.channel_fd;
  request.init_fd = input.init_fd;
  request.init_path = memory_.text(input.init_path);
  void* place = memory_.reserve(request.size);
  std::memcpy(place, &request, std::min<std::size_t>(request.size, sizeof request));
  request_ = static_cast<const ccbox_plan_request*>(place);
}

plan_answer plan_question::ask(const instance& i) const {
  plan_answer answer;
  ccbox_plan_sink sink = {};
  sink.size = shape_.sink_size.value_or(sizeof sink + shape_.sink_extra);
  sink.ctx = &answer.plan;
  sink.argument = sink_argument;
  sink.environment = sink_environment;
  sink.file = sink_file;
  sink.open_path = sink_open_path;
  sink.layer = sink_layer;
  sink.enforces = sink_enforces;
  sink.flags = sink_flags;
  sink.denials = sink_denials;
  // An ordinary sink needs no guard, and asking again and again must not use up memory.
  guarded_memory memory;
  const ccbox_plan_sink* given = &sink;
  if (sink.size != sizeof sink) {
    void* place = memory.reserve(sink.size);
    std::memcpy(place, &sink, std::min<std::size_t>(sink.size, sizeof sink));
    given = static_cast<const ccbox_plan_sink*>(place);
  }
  text_buffer error(shape_.error_capacity);
  answer.status = i.backend()->plan(i.get(), request_, given, &error.text());
  if (!answer.ok()) {
    answer.error = error.take("plan");
    answer.plan = {};
  }
  check_answer(answer, input_, {i.backend()->kind.ptr, i.backend()->kind.len}, shape_.error_capacity);
  return answer;
}

plan_answer ask_plan(const instance& i, const plan_input& input, const plan_shape& shape) {
  return plan_question(input, shape).ask(i);
}

}  // namespace ccbox::contract
