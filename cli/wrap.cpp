#include <boost/json.hpp>
#include <climits>
#include <cstdlib>

#include "commands.hpp"
#include "context.hpp"
#include "output.hpp"
#include "sandbox_manager.hpp"
#include "spec_options.hpp"

namespace ccbox {

namespace json = boost::json;

int wrap_command(const words& arguments) {
  spec_options wanted;
  config_options config;
  option_parser parser(
      "wrap", "[options] [--] COMMAND [ARGUMENT…]",
      "Prints, as one JSON document, the argv and the environment that run COMMAND in an enclosure, "
      "for programs that start processes themselves. The environment is the sanitised one, with its "
      "values: treat the answer as secret.",
      word_form::command);
  declare(parser, wanted);
  bool quiet = false;
  parser.group("Output");
  parser.flag("-q,--quiet", quiet, "Print no warnings");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {{"COMMAND"}, true, "ccbox wrap -- make test"});
  if (p.finished) return p.exit_code;

  const host_facts host = gather_host_facts();
  auto sandbox = build_request(wanted, host);
  if (!sandbox) return report(sandbox.error());
  auto context = load_context(config, CCBOX_PROBE_QUICK, host);
  if (!context) return report(context.error());

  char self[PATH_MAX];
  if (!::realpath("/proc/self/exe", self)) return report(system_error("realpath", "/proc/self/exe", errno));
  // The values travel in the environment: an argv is readable by every user of the host.
  std::vector<std::string> again = as_arguments(config, host);
  for (const auto& [name, value] : sandbox->env)
    again.insert(again.end(), {"--env", name});
  for (const auto& group : wanted.ticketing)
    again.insert(again.end(), {"--ticketing", group});
  (*context)->ticketing = wanted.ticketing;
  sandbox_manager manager((*context)->shared(), self, std::move(again));
  auto wrapped = manager.wrap(p.rest, sandbox->spec);
  if (!wrapped) return report(sandbox->origins.translated(wrapped.error()));
  std::vector<std::string> warnings = wrapped->warnings;
  for (std::string& warning : warnings_about(*sandbox, (*context)->config.environment))
    warnings.push_back(std::move(warning));
  for (const std::string& warning : warnings)
    if (!quiet) warn(warning);

  json::object env;
  for (const auto& [name, value] : wrapped->env)
    env[name] = value;
  for (const auto& [name, value] : sandbox->env)
    env[name] = value;
  print_json(
      json::object{{"argv", json::value_from(wrapped->argv)}, {"env", env}, {"backend", wrapped->backend}});
  return 0;
}

}  // namespace ccbox
