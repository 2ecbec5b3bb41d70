// Backend `none`: ccbox-init as an ordinary process of the host. No boundary of any kind; it claims the
// resource limits alone, so a launch that requires anything else is refused, and its plans carry the flag
// that says so.
#include "ccbox/plugin.hpp"

namespace {

namespace plugin = ccbox::plugin;

class no_enclosure : public plugin::backend {
 public:
  static constexpr std::string_view kind = "none";
  no_enclosure(const plugin::host&, plugin::options&) {}

  plugin::probe_answer probe(ccbox_probe_depth) override {
    plugin::probe_answer answer;
    answer.available = true;
    answer.enforced = CCBOX_RULE_RESOURCE_LIMITS;
    answer.note = "none — no isolation: commands run on the host with the caller's rights";
    return answer;
  }

  void plan(const plugin::plan_request& request, plugin::plan_sink& sink) override {
    const auto init = request.init_path();
    if (init.empty() || init.front() != '/' || init.find('\0') != init.npos)
      throw plugin::failure(CCBOX_INVALID, "the path of ccbox-init must be absolute");
    sink.arguments({init, "--channel", std::to_string(request.channel_fd())});
    sink.enforces(CCBOX_RULE_RESOURCE_LIMITS);
    sink.flags(CCBOX_PLAN_UNCONFINED);
  }
};

}  // namespace

CCBOX_PLUGIN(no_enclosure, "none", "0.1.0")
