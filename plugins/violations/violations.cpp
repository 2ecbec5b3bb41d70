// The monitor that comes with ccbox: makes violations for people out of what was refused.
//
// Options: `ignore`, a block of lines that name harmless refusals (noise_filter.hpp); `built_in_ignore`,
// whether those that everybody has are ignored too (true).
#include "ccbox/plugin.hpp"
#include "session_watch.hpp"

namespace {

namespace plugin = ccbox::plugin;

class violations : public plugin::monitor {
 public:
  violations(const plugin::host&, plugin::options& options)
      : noise_(options.text("ignore"), options.boolean("built_in_ignore", true)) {}

  std::unique_ptr<plugin::watch> open(const plugin::monitor_request& request) override {
    return std::make_unique<ccbox::violations::session_watch>(noise_, request);
  }

 private:
  const ccbox::violations::noise_filter noise_;
};

}  // namespace

CCBOX_PLUGIN(violations, "violations", "0.1.0")
