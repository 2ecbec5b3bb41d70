#include <boost/json.hpp>
#include <climits>
#include <cstdlib>

#include "commands.hpp"
#include "context.hpp"
#include "output.hpp"
#include "sandbox_manager.hpp"
#include "spec_options.hpp"
#include "utf8.hpp"
#include "violation_report.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

// What is printed must be what is run.
result<void> check_utf8(const wrapped_command& wrapped,
                        const std::vector<std::pair<std::string, std::string>>& more_env) {
  for (const std::string& word : wrapped.argv)
    if (!is_utf8(word))
      return error{error_code::invalid_argument,
                   "the word " + quoted(word) + " is not UTF-8, and JSON cannot carry it",
                   "put it into a script, and wrap that"};
  for (const auto* list : {&wrapped.env, &more_env})
    for (const auto& [name, value] : *list)
      if (!is_utf8(name) || !is_utf8(value))
        return error{error_code::invalid_argument,
                     "the variable " + quoted(name) + " is not UTF-8, and JSON cannot carry it",
                     "unset it, or give it another value"};
  return {};
}

// The variables of --env reach the command through the environment of ccbox itself, which runs outside.
result<void> check_effect(const std::vector<std::pair<std::string, std::string>>& env) {
  for (const auto& [name, value] : env) {
    const bool loader =
        name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH" || name == "LOCPATH";
    if (!loader && name != "HOME") continue;
    return error{
        error_code::invalid_argument,
        "--env " + quoted(name) + ": it would change ccbox itself, which runs outside of the enclosure",
        "set it inside: ccbox wrap -- env " + name + "=VALUE COMMAND"};
  }
  return {};
}

}  // namespace

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
  std::optional<std::string> violations;
  parser.group("Output");
  parser.value("--violations", violations, std::string(violations_modes),
               "What the wrapped command tells of refused actions");
  parser.flag("-q,--quiet", quiet, "Print no warnings");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {{"COMMAND"}, true, "ccbox wrap -- make test"});
  if (p.finished) return p.exit_code;

  if (violations && !violations_mode_from_name(*violations))
    return report({error_code::invalid_argument, "--violations " + quoted(*violations) + ": no such choice",
                   "none, summary, all or json"});
  const host_facts host = gather_host_facts();
  auto sandbox = build_request(wanted, host);
  if (!sandbox) return report(sandbox.error());
  if (auto ok = check_effect(sandbox->env); !ok) return report(ok.error());
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
  if (violations) again.insert(again.end(), {"--violations", *violations});
  (*context)->ticketing = wanted.ticketing;
  sandbox_manager manager((*context)->shared(), self, std::move(again));
  auto wrapped = manager.wrap(p.rest, sandbox->spec);
  if (!wrapped) return report(sandbox->origins.translated(wrapped.error()));
  if (auto ok = check_utf8(*wrapped, sandbox->env); !ok) return report(ok.error());
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
