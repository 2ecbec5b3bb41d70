// plugin.h for C++17 and later: a backend is a class with `probe` and `plan`, and one macro line.
//
//   class my_backend : public ccbox::plugin::backend {
//    public:
//     static constexpr std::string_view kind = "native";
//     my_backend(const ccbox::plugin::host& host, ccbox::plugin::options& options)
//         : tool_(options.text("tool", "/usr/bin/mytool")) {}
//     ccbox::plugin::probe_answer probe(ccbox_probe_depth depth) override;
//     void plan(const ccbox::plugin::plan_request& request, ccbox::plugin::plan_sink& sink) override;
//   };
//   CCBOX_PLUGIN(my_backend, "mine", "1.0")
//
// An egress plugin derives from ccbox::plugin::egress and a monitor from ccbox::plugin::monitor, with the
// same constructor and the same macro.
//
// Promises: no exception leaves the plugin; a `failure` becomes its status and text, any other exception
// CCBOX_FAILED with its what(). Options that the constructor never asks for are refused by name. Structs of
// an older or newer host are read and written within the size that it declares. Views are borrowed for the
// call; copy what must live longer. `probe` is called on one thread at a time; `plan` may be called on
// several threads at once.
//
// Header only, standard library only. Everything in it stays inside the plugin: the boundary is plugin.h.
#ifndef CCBOX_PLUGIN_HPP
#define CCBOX_PLUGIN_HPP

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "ccbox/plugin.h"

namespace ccbox::plugin {

inline std::string_view view(ccbox_str text) {
  return text.ptr ? std::string_view(text.ptr, text.len) : std::string_view();
}
inline ccbox_str str(std::string_view text) {
  return {text.data(), text.size()};
}

// Why a call fails: `text` is one line that names the object, the cause and the remedy.
class failure : public std::runtime_error {
 public:
  failure(ccbox_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  ccbox_status status() const { return status_; }

 private:
  ccbox_status status_;
};

// Writes one line into a buffer of the host: control characters become spaces; a text that is too long is cut
// between two characters.
inline void write_text(ccbox_text* to, std::string_view text) noexcept {
  if (!to) return;
  to->length = 0;
  if (!to->ptr) return;
  std::size_t length = std::min(text.size(), to->capacity);
  if (length < text.size())
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
      --length;
  for (std::size_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    to->ptr[i] = byte < 0x20 || byte == 0x7f ? ' ' : text[i];
  }
  to->length = length;
}

// What a struct of version 1.0 ended with: tables of hosts older than that have an impossible layout.
constexpr std::size_t option_size_1_0 = offsetof(ccbox_option, value) + sizeof(ccbox_str);
constexpr std::size_t rule_size_1_0 = offsetof(ccbox_rule, reason) + sizeof(ccbox_str);
constexpr std::size_t egress_rule_size_1_0 = offsetof(ccbox_egress_rule, reason) + sizeof(ccbox_str);
constexpr std::size_t listener_size_1_0 = offsetof(ccbox_listener, address) + sizeof(ccbox_str);

// The struct as this side knows it; what the other side does not have is zero.
template <class Struct>
Struct read_struct(const void* from, std::size_t declared_size) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  Struct out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  std::memcpy(static_cast<void*>(&out), from, std::min(declared_size, sizeof out));
  return out;
}

// What the host gives. Copyable; valid until the plugin object is destroyed; may be used from any thread.
class host {
 public:
  explicit host(const ccbox_host* table) : table_(table) {}

  void log(ccbox_level level, std::string_view text) const {
    if (CCBOX_HAS(table_, ccbox_host, log) && table_->log) table_->log(table_->ctx, level, str(text));
  }
  // An event for a session's stream; `json` is one object.
  ccbox_status emit(std::string_view session_id, std::string_view type, std::string_view json) const {
    if (!CCBOX_HAS(table_, ccbox_host, emit) || !table_->emit) return CCBOX_UNAVAILABLE;
    return table_->emit(table_->ctx, str(session_id), str(type), str(json));
  }
  const void* get_extension(std::string_view name) const {
    if (!CCBOX_HAS(table_, ccbox_host, get_extension) || !table_->get_extension) return nullptr;
    return table_->get_extension(table_->ctx, str(name));
  }

 private:
  const ccbox_host* table_;
};

// `options:` of the manifest entry. Each getter makes its key a known one; those that nobody asked for are
// refused when the constructor returns. Every error is CCBOX_INVALID and names the option.
class options {
 public:
  explicit options(const ccbox_config* config) {
    if (!config || !CCBOX_HAS(config, ccbox_config, option_count)) return;
    if (config->option_count > 0 && (!config->options || config->option_stride < option_size_1_0))
      throw failure(CCBOX_INVALID, "the host's option table has an impossible layout");
    const auto* at = reinterpret_cast<const char*>(config->options);
    for (std::size_t i = 0; i < config->option_count; ++i, at += config->option_stride) {
      const auto option = read_struct<ccbox_option>(at, config->option_stride);
      const std::string key(view(option.key));
      if (find(key)) throw failure(CCBOX_INVALID, "option '" + key + "' is given twice");
      given_.emplace_back(key, std::string(view(option.value)));
    }
  }

  std::string text(std::string_view key, std::string_view fallback = {}) {
    const auto* value = ask(key);
    return value ? *value : std::string(fallback);
  }
  bool boolean(std::string_view key, bool fallback) {
    const auto* value = ask(key);
    if (!value) return fallback;
    if (*value == "true") return true;
    if (*value == "false") return false;
    throw bad_value(key, *value, "true or false");
  }
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t least, std::int64_t most) {
    const auto* value = ask(key);
    if (!value) return fallback;
    std::int64_t number = 0;
    const char* end = value->data() + value->size();
    const auto parsed = std::from_chars(value->data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most)
      throw bad_value(key, *value,
                      "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return number;
  }
  // One of `allowed`, the first of which is the default.
  std::string choice(std::string_view key, std::initializer_list<std::string_view> allowed) {
    const auto* value = ask(key);
    if (!value) return std::string(*allowed.begin());
    std::string list;
    for (const auto one : allowed) {
      if (one == *value) return *value;
      list += (list.empty() ? "" : ", ") + std::string(one);
    }
    throw bad_value(key, *value, "one of: " + list);
  }

  void refuse_unknown() const {
    for (const auto& option : given_) {
      if (std::find(known_.begin(), known_.end(), option.first) != known_.end()) continue;
      std::string list;
      for (const auto& key : known_)
        list += (list.empty() ? "" : ", ") + key;
      throw failure(CCBOX_INVALID,
                    "unknown option '" + option.first + "'" +
                        (list.empty() ? "; this plugin takes none" : "; known options: " + list));
    }
  }

 private:
  const std::string* find(std::string_view key) const {
    for (const auto& option : given_)
      if (option.first == key) return &option.second;
    return nullptr;
  }
  const std::string* ask(std::string_view key) {
    known_.emplace_back(key);
    return find(key);
  }
  static failure bad_value(std::string_view key, const std::string& value, const std::string& wanted) {
    return {CCBOX_INVALID, "option '" + std::string(key) + "' is '" + value + "', expected " + wanted};
  }

  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> known_;
};

struct probe_answer {
  bool available = false;
  bool requires_install = false;  // `hint` names packages to install
  std::uint64_t enforced = 0;     // CCBOX_RULE_* that this host lets it enforce
  std::string note;               // what it is
  // When not available, or when this host keeps it from claiming a bit.
  std::string hint;   // what the operator can do
  std::string cause;  // a word for machines
};

struct rule {
  std::size_t index = 0;  // for plan_sink::layer
  ccbox_rule_kind kind = 0;
  std::uint32_t flags = 0;
  std::uint64_t bit = 0;
  std::string_view path, guest_path, reason;
  bool has(std::uint32_t flag) const { return (flags & flag) == flag; }
};

inline void check_rules(const ccbox_rule* table, std::size_t count, std::uint32_t stride) {
  if (count > 0 && (!table || stride < rule_size_1_0))
    throw failure(CCBOX_INVALID, "the host's rule table has an impossible layout");
}

inline rule read_rule(const ccbox_rule* table, std::size_t index, std::uint32_t stride) {
  const auto* at = reinterpret_cast<const char*>(table) + index * stride;
  const auto one = read_struct<ccbox_rule>(at, stride);
  return {index, one.kind, one.flags, one.bit, view(one.path), view(one.guest_path), view(one.reason)};
}

class plan_request {
 public:
  // Throws failure if the host's structs are older than version 1.0 of the ABI.
  explicit plan_request(const ccbox_plan_request* from) {
    if (!from || !CCBOX_HAS(from, ccbox_plan_request, init_path))
      throw failure(CCBOX_INVALID, "the host's plan request is smaller than version 1.0");
    raw_ = read_struct<ccbox_plan_request>(from, from->size);
    check_rules(raw_.rules, raw_.rule_count, raw_.rule_stride);
    rules_.reserve(raw_.rule_count);
    for (std::size_t i = 0; i < raw_.rule_count; ++i)
      rules_.push_back(read_rule(raw_.rules, i, raw_.rule_stride));
  }

  const std::vector<rule>& rules() const { return rules_; }
  std::uint64_t required() const { return raw_.required; }
  std::uint64_t waived() const { return raw_.waived; }
  // The launch gave this rule's bit up: do not apply it.
  bool is_waived(const rule& r) const { return (r.bit & raw_.waived) != 0; }
  std::string_view session_id() const { return view(raw_.session_id); }
  std::string_view workdir() const { return view(raw_.workdir); }
  std::string_view home() const { return view(raw_.home); }
  std::string_view tmpdir() const { return view(raw_.tmpdir); }
  ccbox_network network() const { return raw_.network; }
  std::uint32_t uid() const { return raw_.uid; }
  std::uint32_t gid() const { return raw_.gid; }
  int channel_fd() const { return raw_.channel_fd; }
  int init_fd() const { return raw_.init_fd; }
  std::string_view init_path() const { return view(raw_.init_path); }

 private:
  ccbox_plan_request raw_;
  std::vector<rule> rules_;
};

// Where a plan goes. Call in any order; the texts are copied.
class plan_sink {
 public:
  explicit plan_sink(const ccbox_plan_sink* table) : table_(table) {
    if (!table_ || !CCBOX_HAS(table_, ccbox_plan_sink, flags))
      throw failure(CCBOX_INVALID, "the host's plan sink is smaller than version 1.0");
  }

  void argument(std::string_view text) { table_->argument(table_->ctx, str(text)); }
  void arguments(std::initializer_list<std::string_view> texts) {
    for (const auto text : texts)
      argument(text);
  }
  void environment(std::string_view name, std::string_view value) {
    table_->environment(table_->ctx, str(name), str(value));
  }
  // The descriptor numbers under which the started process finds a sealed file or a path opened O_PATH.
  int file(std::string_view label, std::string_view bytes) {
    return number(table_->file(table_->ctx, str(label), str(bytes)), "file '" + std::string(label) + "'");
  }
  int open_path(std::string_view host_path) {
    return number(table_->open_path(table_->ctx, str(host_path)), "path '" + std::string(host_path) + "'");
  }
  // The number of a packet socket that takes denials; -1: this host's version of the ABI has none.
  int denials() {
    if (!CCBOX_HAS(table_, ccbox_plan_sink, denials)) return -1;
    return number(table_->denials(table_->ctx), "socket for denials");
  }
  // What enforces a rule, for explain.
  void layer(const rule& r, std::string_view text) { table_->layer(table_->ctx, r.index, str(text)); }
  void enforces(std::uint64_t bits) { table_->enforces(table_->ctx, bits); }
  void flags(std::uint32_t flags) { table_->flags(table_->ctx, flags); }

 private:
  static int number(std::int32_t fd, const std::string& object) {
    if (fd < 0) throw failure(CCBOX_TOO_LARGE, "the host took no further " + object + " into the plan");
    return fd;
  }
  const ccbox_plan_sink* table_;
};

class backend {
 public:
  virtual ~backend() = default;
  virtual probe_answer probe(ccbox_probe_depth depth) = 0;
  // The full probe, for a backend that needs ccbox-init for it.
  virtual probe_answer probe_fully(std::string_view /*init_path*/) { return probe(CCBOX_PROBE_FULL); }
  virtual void plan(const plan_request& request, plan_sink& sink) = 0;
  // A further extension table, or null. Must live as long as the object.
  virtual const void* extension(std::string_view) { return nullptr; }
};

struct egress_rule {
  ccbox_egress_action action = 0;
  std::uint32_t flags = 0;
  std::string_view pattern, origin, reason;
};

struct egress_listener {
  ccbox_listener_kind kind = 0;
  int fd = -1;               // the host's; duplicate it
  std::string_view address;  // empty: the socket's own
};

class egress_request {
 public:
  // Throws failure if the host's structs are older than version 1.0 of the ABI.
  explicit egress_request(const ccbox_egress_request* from) {
    if (!from || !CCBOX_HAS(from, ccbox_egress_request, net_connect))
      throw failure(CCBOX_INVALID, "the host's egress request is smaller than version 1.0");
    raw_ = read_struct<ccbox_egress_request>(from, from->size);
    if (raw_.rule_count > 0 && (!raw_.rules || raw_.rule_stride < egress_rule_size_1_0))
      throw failure(CCBOX_INVALID, "the host's egress rule table has an impossible layout");
    if (raw_.listener_count > 0 && (!raw_.listeners || raw_.listener_stride < listener_size_1_0))
      throw failure(CCBOX_INVALID, "the host's listener table has an impossible layout");
    rules_.reserve(raw_.rule_count);
    const auto* at = reinterpret_cast<const char*>(raw_.rules);
    for (std::size_t i = 0; i < raw_.rule_count; ++i, at += raw_.rule_stride)
      rules_.push_back(read_rule(at, raw_.rule_stride));
    at = reinterpret_cast<const char*>(raw_.listeners);
    for (std::size_t i = 0; i < raw_.listener_count; ++i, at += raw_.listener_stride) {
      const auto one = read_struct<ccbox_listener>(at, raw_.listener_stride);
      listeners_.push_back({one.kind, one.fd, view(one.address)});
    }
  }

  static egress_rule read_rule(const void* from, std::size_t size) {
    const auto one = read_struct<ccbox_egress_rule>(from, size);
    return {one.action, one.flags, view(one.pattern), view(one.origin), view(one.reason)};
  }

  const std::vector<egress_rule>& rules() const { return rules_; }
  const std::vector<egress_listener>& listeners() const { return listeners_; }
  // The session's settings. Call refuse_unknown() on it when every known one has been asked for.
  options settings() const {
    const ccbox_config config = {sizeof config, raw_.option_stride, raw_.options, raw_.option_count};
    return options(&config);
  }
  std::string_view session_id() const { return view(raw_.session_id); }
  std::string_view net_connect() const { return view(raw_.net_connect); }

 private:
  ccbox_egress_request raw_;
  std::vector<egress_rule> rules_;
  std::vector<egress_listener> listeners_;
};

// Where commands find the session's pair. The texts are copied.
class egress_sink {
 public:
  explicit egress_sink(const ccbox_egress_sink* table) : table_(table) {
    if (!table_ || !CCBOX_HAS(table_, ccbox_egress_sink, environment))
      throw failure(CCBOX_INVALID, "the host's egress sink is smaller than version 1.0");
  }
  void endpoint(ccbox_listener_kind kind, std::string_view address) {
    table_->endpoint(table_->ctx, kind, str(address));
  }
  void environment(std::string_view name, std::string_view value, std::uint32_t flags = 0) {
    table_->environment(table_->ctx, str(name), str(value), flags);
  }

 private:
  const ccbox_egress_sink* table_;
};

struct egress_answer {
  bool allowed = false;
  std::string reason;  // a word for machines; empty when allowed
  std::string rule;    // the pattern that decided, with its origin
  std::string text;    // for people
};

// A counter's name, its labels as Prometheus writes them, and its value.
using counter_sink = std::function<void(std::string_view name, std::string_view labels, double value)>;

// Every function may be called on any thread, and calls overlap.
class egress {
 public:
  virtual ~egress() = default;
  // Throws failure if open() would not take the rule.
  virtual void check_rule(const egress_rule& rule) = 0;
  virtual void open(const egress_request& request, egress_sink& sink) = 0;
  virtual egress_answer decide(std::string_view session_id, std::string_view host, std::uint16_t port) = 0;
  virtual void counters(const counter_sink& each) = 0;
  virtual void close(std::string_view session_id) = 0;
  // A further extension table, or null. Must live as long as the object.
  virtual const void* extension(std::string_view) { return nullptr; }
};

// A refused action, as it comes and as it is handed on. Borrowed for the call.
struct violation {
  std::uint64_t exec_id = 0;  // 0: not known
  std::uint64_t count = 1;
  std::string_view action, target, suggested_capability, raw;
};

class monitor_request {
 public:
  // Throws failure if the host's structs are older than version 1.0 of the ABI.
  explicit monitor_request(const ccbox_monitor_request* from) {
    if (!from || !CCBOX_HAS(from, ccbox_monitor_request, workdir))
      throw failure(CCBOX_INVALID, "the host's monitor request is smaller than version 1.0");
    raw_ = read_struct<ccbox_monitor_request>(from, from->size);
    check_rules(raw_.rules, raw_.rule_count, raw_.rule_stride);
  }

  // The rules, one after the other: most monitors need few of many.
  template <class Each>
  void each_rule(Each&& each) const {
    for (std::size_t i = 0; i < raw_.rule_count; ++i)
      each(read_rule(raw_.rules, i, raw_.rule_stride));
  }
  // Rules of other bits are not applied.
  bool is_enforced(const rule& r) const { return (r.bit & ~raw_.enforced) == 0; }
  bool has(std::uint32_t flag) const { return (raw_.flags & flag) != 0; }
  std::string_view session_id() const { return view(raw_.session_id); }
  std::string_view workdir() const { return view(raw_.workdir); }

 private:
  ccbox_monitor_request raw_;
};

// Where violations go. The texts are copied.
class monitor_sink {
 public:
  explicit monitor_sink(const ccbox_monitor_sink* table) : table_(table) {
    if (!table_ || !CCBOX_HAS(table_, ccbox_monitor_sink, violation))
      throw failure(CCBOX_INVALID, "the host's monitor sink is smaller than version 1.0");
  }
  void add(const violation& v) {
    const ccbox_violation raw = {
        sizeof raw, 0, v.exec_id, v.count, str(v.action), str(v.target), str(v.suggested_capability),
        str(v.raw)};
    table_->violation(table_->ctx, &raw);
  }

 private:
  const ccbox_monitor_sink* table_;
};

// What a monitor keeps of one session; its functions are called one at a time, on any thread.
class watch {
 public:
  virtual ~watch() = default;
  virtual void denial(const violation& denied, monitor_sink& sink) = 0;
  // `bytes` empty: the command has ended.
  virtual void output(std::uint64_t exec_id, std::string_view bytes, monitor_sink& sink) = 0;
  // Answers after how many milliseconds to call it again; 0: not before the next denial or output.
  virtual std::uint32_t flush(bool last, monitor_sink& sink) = 0;
};

class monitor {
 public:
  virtual ~monitor() = default;
  // On any thread, and calls overlap.
  virtual std::unique_ptr<watch> open(const monitor_request& request) = 0;
  // A further extension table, or null. Must live as long as the object.
  virtual const void* extension(std::string_view) { return nullptr; }
};

// Runs `body` and turns whatever it throws into a status and a text.
template <class Body>
ccbox_status guarded(ccbox_text* error, Body&& body) noexcept {
  try {
    body();
    return CCBOX_OK;
  } catch (const failure& e) {
    write_text(error, e.what());
    return e.status() == CCBOX_OK ? CCBOX_FAILED : e.status();
  } catch (const std::bad_alloc&) {
    write_text(error, "out of memory");
  } catch (const std::exception& e) {
    write_text(error, e.what());
  } catch (...) {
    write_text(error, "an exception of unknown type");
  }
  return CCBOX_FAILED;
}

// The C functions of the extension "ccbox.backend/1" for a class.
template <class Backend>
struct backend_boundary {
  static const ccbox_backend* table() {
    static constexpr ccbox_backend functions = {
        sizeof(ccbox_backend), 0, {Backend::kind.data(), Backend::kind.size()}, &probe, &plan};
    return &functions;
  }

  static Backend* object(ccbox_plugin* instance) { return reinterpret_cast<Backend*>(instance); }

  static ccbox_status probe(ccbox_plugin* instance, const ccbox_probe_request* request,
                            ccbox_probe_result* result, ccbox_text* error) {
    return guarded(error, [&] {
      if (!request || !CCBOX_HAS(request, ccbox_probe_request, depth) || !result ||
          !CCBOX_HAS(result, ccbox_probe_result, cause))
        throw failure(CCBOX_INVALID, "the host's probe structs are smaller than version 1.0");
      const auto init_path =
          CCBOX_HAS(request, ccbox_probe_request, init_path) ? view(request->init_path) : std::string_view();
      const probe_answer answer = request->depth == CCBOX_PROBE_FULL
                                      ? object(instance)->probe_fully(init_path)
                                      : object(instance)->probe(request->depth);
      result->available = answer.available;
      result->requires_install = answer.requires_install;
      result->enforced = answer.enforced;
      write_text(&result->note, answer.note);
      write_text(&result->hint, answer.hint);
      write_text(&result->cause, answer.cause);
    });
  }

  static ccbox_status plan(ccbox_plugin* instance, const ccbox_plan_request* request,
                           const ccbox_plan_sink* sink, ccbox_text* error) {
    return guarded(error, [&] {
      const plan_request asked(request);
      plan_sink answer(sink);
      object(instance)->plan(asked, answer);
    });
  }
};

// The C functions of the extension "ccbox.egress/1" for a class.
template <class Egress>
struct egress_boundary {
  static const ccbox_egress* table() {
    static constexpr ccbox_egress functions = {
        sizeof(ccbox_egress), 0, &check_rule, &open, &decide, &counters, &close};
    return &functions;
  }

  static Egress* object(ccbox_plugin* instance) { return reinterpret_cast<Egress*>(instance); }

  static ccbox_status check_rule(ccbox_plugin* instance, const ccbox_egress_rule* rule, ccbox_text* error) {
    // A single rule has no size of its own: it is as version 1.0 has it.
    return guarded(error, [&] {
      if (!rule) throw failure(CCBOX_INVALID, "there is no rule to check");
      object(instance)->check_rule(egress_request::read_rule(rule, egress_rule_size_1_0));
    });
  }

  static ccbox_status open(ccbox_plugin* instance, const ccbox_egress_request* request,
                           const ccbox_egress_sink* sink, ccbox_text* error) {
    return guarded(error, [&] {
      const egress_request asked(request);
      egress_sink answer(sink);
      object(instance)->open(asked, answer);
    });
  }

  static ccbox_status decide(ccbox_plugin* instance, ccbox_str session_id, ccbox_str host, std::uint16_t port,
                             ccbox_egress_decision* decision, ccbox_text* error) {
    return guarded(error, [&] {
      if (!decision || !CCBOX_HAS(decision, ccbox_egress_decision, text))
        throw failure(CCBOX_INVALID, "the host's decision struct is smaller than version 1.0");
      const egress_answer answer = object(instance)->decide(view(session_id), view(host), port);
      decision->allowed = answer.allowed;
      write_text(&decision->reason, answer.reason);
      write_text(&decision->rule, answer.rule);
      write_text(&decision->text, answer.text);
    });
  }

  static void counters(ccbox_plugin* instance, void* ctx,
                       void (*counter)(void* ctx, ccbox_str name, ccbox_str labels, double value)) {
    guarded(nullptr, [&] {
      object(instance)->counters([&](std::string_view name, std::string_view labels, double value) {
        counter(ctx, str(name), str(labels), value);
      });
    });
  }

  static void close(ccbox_plugin* instance, ccbox_str session_id) {
    guarded(nullptr, [&] { object(instance)->close(view(session_id)); });
  }
};

// The C functions of the extension "ccbox.monitor/1" for a class.
template <class Monitor>
struct monitor_boundary {
  static const ccbox_monitor* table() {
    static constexpr ccbox_monitor functions = {
        sizeof(ccbox_monitor), 0, &open, &denial, &output, &flush, &close};
    return &functions;
  }

  static watch* object(ccbox_watch* opened) { return reinterpret_cast<watch*>(opened); }

  static ccbox_status open(ccbox_plugin* instance, const ccbox_monitor_request* request, ccbox_watch** out,
                           ccbox_text* error) {
    return guarded(error, [&] {
      const monitor_request asked(request);
      std::unique_ptr<watch> made = reinterpret_cast<Monitor*>(instance)->open(asked);
      *out = reinterpret_cast<ccbox_watch*>(made.release());
    });
  }

  static void denial(ccbox_watch* opened, const ccbox_violation* denied, const ccbox_monitor_sink* sink) {
    guarded(nullptr, [&] {
      if (!denied || !CCBOX_HAS(denied, ccbox_violation, raw)) return;
      const auto one = read_struct<ccbox_violation>(denied, denied->size);
      monitor_sink to(sink);
      object(opened)->denial({one.exec_id, one.count, view(one.action), view(one.target),
                              view(one.suggested_capability), view(one.raw)},
                             to);
    });
  }

  static void output(ccbox_watch* opened, std::uint64_t exec_id, ccbox_str bytes,
                     const ccbox_monitor_sink* sink) {
    guarded(nullptr, [&] {
      monitor_sink to(sink);
      object(opened)->output(exec_id, view(bytes), to);
    });
  }

  static std::uint32_t flush(ccbox_watch* opened, std::uint32_t last, const ccbox_monitor_sink* sink) {
    std::uint32_t again = 0;
    guarded(nullptr, [&] {
      monitor_sink to(sink);
      again = object(opened)->flush(last != 0, to);
    });
    return again;
  }

  static void close(ccbox_watch* opened) {
    guarded(nullptr, [&] { delete object(opened); });
  }
};

// The C functions of a plugin class; CCBOX_PLUGIN puts them into the descriptor.
template <class Plugin>
struct boundary {
  static constexpr bool is_backend = std::is_base_of_v<backend, Plugin>;
  static constexpr bool is_egress = std::is_base_of_v<egress, Plugin>;
  static constexpr bool is_monitor = std::is_base_of_v<monitor, Plugin>;
  static_assert(is_backend || is_egress || is_monitor,
                "derive from ccbox::plugin::backend, ccbox::plugin::egress or ccbox::plugin::monitor");

  static Plugin* object(ccbox_plugin* instance) { return reinterpret_cast<Plugin*>(instance); }

  static ccbox_status create(const ccbox_host* table, const ccbox_config* config, ccbox_plugin** out,
                             ccbox_text* error) {
    return guarded(error, [&] {
      options given(config);
      auto made = std::make_unique<Plugin>(host(table), given);
      given.refuse_unknown();
      *out = reinterpret_cast<ccbox_plugin*>(made.release());
    });
  }

  static void destroy(ccbox_plugin* instance) {
    guarded(nullptr, [&] { delete object(instance); });
  }

  static const void* get_extension(ccbox_plugin* instance, ccbox_str name) {
    if constexpr (is_backend)
      if (view(name) == CCBOX_BACKEND_EXTENSION) return backend_boundary<Plugin>::table();
    if constexpr (is_egress)
      if (view(name) == CCBOX_EGRESS_EXTENSION) return egress_boundary<Plugin>::table();
    if constexpr (is_monitor)
      if (view(name) == CCBOX_MONITOR_EXTENSION) return monitor_boundary<Plugin>::table();
    const void* found = nullptr;
    guarded(nullptr, [&] { found = object(instance)->extension(view(name)); });
    return found;
  }
};

}  // namespace ccbox::plugin

// The one exported symbol, for a class derived from ccbox::plugin::backend, egress or monitor. `name` and
// `version` are literals.
#define CCBOX_PLUGIN(type, name, version)                                             \
  extern "C" CCBOX_EXPORT const ccbox_plugin_descriptor* ccbox_plugin_v1(void) {      \
    using boundary = ::ccbox::plugin::boundary<type>;                                 \
    static constexpr ccbox_plugin_descriptor descriptor = {                           \
        sizeof(ccbox_plugin_descriptor), CCBOX_ABI_MINOR,   {name, sizeof(name) - 1}, \
        {version, sizeof(version) - 1},  &boundary::create, &boundary::destroy,       \
        &boundary::get_extension};                                                    \
    return &descriptor;                                                               \
  }

#endif  // CCBOX_PLUGIN_HPP
