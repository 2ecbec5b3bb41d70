// The veneer alone: a whole monitor in C++17 and later.
#include "ccbox/plugin.hpp"

namespace {

class smallest_watch : public ccbox::plugin::watch {
 public:
  explicit smallest_watch(const ccbox::plugin::monitor_request& request)
      : reads_lines_(!request.has(CCBOX_MONITOR_DENIALS_REPORTED)), secrets_(0) {
    request.each_rule([&](const ccbox::plugin::rule& rule) {
      secrets_ += rule.kind == CCBOX_KIND_READ_DENY && request.is_enforced(rule);
    });
  }

  void denial(const ccbox::plugin::violation& denied, ccbox::plugin::monitor_sink& sink) override {
    sink.add(denied);
  }
  void output(std::uint64_t exec_id, std::string_view bytes, ccbox::plugin::monitor_sink& sink) override {
    ccbox::plugin::violation found;
    found.exec_id = exec_id;
    found.action = "system-call";
    found.target = bytes.substr(0, secrets_);
    if (reads_lines_) sink.add(found);
  }
  std::uint32_t flush(bool, ccbox::plugin::monitor_sink&) override { return 0; }

 private:
  const bool reads_lines_;
  std::size_t secrets_;
};

class smallest : public ccbox::plugin::monitor {
 public:
  smallest(const ccbox::plugin::host&, ccbox::plugin::options&) {}
  std::unique_ptr<ccbox::plugin::watch> open(const ccbox::plugin::monitor_request& request) override {
    return std::make_unique<smallest_watch>(request);
  }
};

}  // namespace

CCBOX_PLUGIN(smallest, "smallest_monitor", "1")
