#include "contract/contract_run.hpp"

namespace ccbox::test {

std::string broken_promises(const std::string& plugin, const plugin_options& options) {
  contract_options how;
  how.options = options;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  how.time_factor = 50;
#else
  how.time_factor = 10;
#endif
  const auto report = run_plugin_contract(plugin, how);
  if (!report) return report.error().what;
  std::string out;
  for (const auto& check : report->checks)
    if (check.state == contract_check::outcome::failed) out += check.name + ": " + check.reason + "\n";
  return out;
}

}  // namespace ccbox::test
