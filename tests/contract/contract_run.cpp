#include "contract/contract_run.hpp"

#include "support/sanitizer.hpp"

namespace ccbox::test {

std::string broken_promises(const std::string& plugin, const plugin_options& options) {
  contract_options how;
  how.options = options;
  how.time_factor = sanitized ? 50 : 10;
  const auto report = run_plugin_contract(plugin, how);
  if (!report) return report.error().what;
  std::string out;
  for (const auto& check : report->checks)
    if (check.state == contract_check::outcome::failed) out += check.name + ": " + check.reason + "\n";
  return out;
}

}  // namespace ccbox::test
