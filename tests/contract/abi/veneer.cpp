// The veneer alone, and twice: a whole backend in C++17 and later.
#include "ccbox/plugin.hpp"

namespace {

class smallest : public ccbox::plugin::backend {
 public:
  static constexpr std::string_view kind = "native";
  smallest(const ccbox::plugin::host& host, ccbox::plugin::options& options)
      : host_(host),
        tool_(options.text("tool", "/usr/bin/tool")),
        level_(options.integer("level", 1, 0, 9)),
        fast_(options.boolean("fast", false)),
        network_(options.choice("network", {"none", "host"})) {}

  ccbox::plugin::probe_answer probe(ccbox_probe_depth depth) override {
    host_.log(CCBOX_DEBUG, depth == CCBOX_PROBE_FULL ? "full" : "quick");
    ccbox::plugin::probe_answer answer;
    answer.available = fast_ || level_ > 0;
    answer.note = network_;
    return answer;
  }

  void plan(const ccbox::plugin::plan_request& request, ccbox::plugin::plan_sink& sink) override {
    for (const auto& rule : request.rules())
      if (!request.is_waived(rule) && rule.has(CCBOX_RULE_READ_ONLY)) sink.layer(rule, "read-only");
    if (request.workdir().empty()) throw ccbox::plugin::failure(CCBOX_INVALID, "no working directory");
    sink.arguments({tool_, "--channel", std::to_string(request.channel_fd())});
    sink.enforces(0);
  }

 private:
  const ccbox::plugin::host host_;
  const std::string tool_;
  const std::int64_t level_;
  const bool fast_;
  const std::string network_;
};

}  // namespace

CCBOX_PLUGIN(smallest, "smallest", "1")
