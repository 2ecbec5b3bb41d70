// What the checks of the contract suite work with: the plugin under test, memory that catches a plugin which
// reads too far or too late, and a sink that records the plan. Runs in the child process of one check;
// nothing here is shared with the suite's own process. A broken promise is a thrown `violation`; nothing is
// ever thrown through a function of the plugin.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ccbox/plugin.h"

namespace ccbox::contract {

struct violation {
  std::string reason;
};
// Without an instance there is nothing to check further.
struct create_refused : violation {};
struct not_applicable {
  std::string reason;
};

// Throws a violation unless `kept`.
void expect(bool kept, const std::string& reason);

// Bytes for a plugin to read: they end where an inaccessible page begins, and become inaccessible themselves
// when the object goes. The address range is never used again, so a stale pointer always faults.
class guarded_memory {
 public:
  guarded_memory() = default;
  guarded_memory(const guarded_memory&) = delete;
  guarded_memory& operator=(const guarded_memory&) = delete;
  ~guarded_memory();

  // `size` bytes aligned to 8, filled with 0xff; when size is no multiple of 8 up to 7 more 0xff bytes
  // follow.
  void* reserve(std::size_t size);
  ccbox_str text(std::string_view bytes);       // ends exactly at the inaccessible page
  ccbox_str bulk_text(std::string_view bytes);  // one byte after the other: for ten thousand of them

  // While one lives, address ranges are given back after all: where the growth of this process is measured.
  struct give_back {
    give_back() { never_reuse_ = false; }
    ~give_back() { never_reuse_ = true; }
  };

 private:
  void* map(std::size_t size, std::size_t& mapped);
  std::vector<std::pair<void*, std::size_t>> regions_;
  char* bulk_ = nullptr;
  std::size_t bulk_left_ = 0;
  static inline bool never_reuse_ = true;
};

// A buffer of `capacity` bytes with a canary behind it.
class text_buffer {
 public:
  explicit text_buffer(std::size_t capacity);
  ccbox_text& text() { return text_; }
  // The text. A violation if the plugin wrote or claims more than the capacity, or it is not one line.
  std::string take(const std::string& who) const;

 private:
  std::vector<char> bytes_;
  ccbox_text text_;
};

struct subject {
  ccbox_plugin_entry entry = nullptr;
  const ccbox_plugin_descriptor* descriptor = nullptr;
  std::vector<std::pair<std::string, std::string>> options;
  unsigned time_factor = 1;
  std::string directory;           // made for the suite: see make_fixture in plugin_contract.cpp
  std::size_t threads_before = 0;  // of this process before the plugin was loaded
};

// One created plugin. Destroying it calls destroy.
class instance {
 public:
  explicit instance(const subject& s);  // a violation if create fails
  ~instance();
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;

  ccbox_plugin* get() const { return plugin_; }
  const ccbox_backend* backend() const;  // throws not_applicable if the plugin is no backend

 private:
  const subject& subject_;
  ccbox_plugin* plugin_ = nullptr;
  const ccbox_backend* backend_ = nullptr;
};

// A host table that answers nothing and lives for ever.
const ccbox_host& quiet_host();

// create with these options; the configuration is inaccessible when it returns.
struct create_answer {
  ccbox_status status;
  ccbox_plugin* plugin;
  std::string error;
};
create_answer create_plugin(const subject& s, const std::vector<std::pair<std::string, std::string>>& options,
                            std::uint32_t stride_extra = 0, std::size_t error_capacity = 512);

struct probe_answer {
  ccbox_status status = CCBOX_OK;
  bool available = false;
  std::uint32_t requires_install = 0;
  std::uint64_t enforced = 0;
  std::string note, hint, cause, error;
  bool operator==(const probe_answer&) const = default;
};
probe_answer ask_probe(const instance& i, ccbox_probe_depth depth, std::size_t capacity = 512);

struct recorded_plan {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> paths;
  std::map<std::size_t, std::string> layers;
  std::uint64_t enforced = 0;
  std::uint32_t flags = 0;
  unsigned enforces_calls = 0, denials = 0;
  bool operator==(const recorded_plan&) const = default;

  std::vector<std::string_view> texts() const;  // every byte string of it
};

struct plan_answer {
  ccbox_status status = CCBOX_OK;
  std::string error;
  recorded_plan plan;
  bool ok() const { return status == CCBOX_OK; }
  bool operator==(const plan_answer&) const = default;
};

struct rule_input {
  ccbox_rule_kind kind = 0;
  std::uint32_t flags = 0;
  std::uint64_t bit = 0;
  std::string path, guest_path, reason;
};

struct plan_input {
  std::vector<rule_input> rules;
  std::uint64_t required = 0, waived = 0;
  std::string session_id, workdir, home, tmpdir, init_path;
  ccbox_network network = CCBOX_NETWORK_PROXY_ONLY;
  std::int32_t channel_fd = 3, init_fd = 4;
};
// A small, ordinary request over the suite's directory.
plan_input ordinary_input(const subject& s);

// How the structs are laid out: an older or a newer host than this header.
struct plan_shape {
  std::optional<std::uint32_t> request_size = {}, sink_size = {};
  std::uint32_t request_extra = 0, sink_extra = 0, stride_extra = 0;
  std::size_t error_capacity = 512;
};

// A request in guarded memory, to be asked any number of times from any thread.
class plan_question {
 public:
  plan_question(const plan_input& input, const plan_shape& shape = {});
  // A violation if the answer breaks what holds for every plan: see check_answer in contract_subject.cpp.
  plan_answer ask(const instance& i) const;

 private:
  guarded_memory memory_;
  plan_input input_;
  plan_shape shape_;
  const ccbox_plan_request* request_ = nullptr;
};

plan_answer ask_plan(const instance& i, const plan_input& input, const plan_shape& shape = {});

std::string status_name(ccbox_status status);

}  // namespace ccbox::contract
