#include "commands.hpp"
#include "context.hpp"
#include "existing_matches.hpp"
#include "output.hpp"
#include "runner.hpp"
#include "spec_options.hpp"

namespace ccbox {

int run_command(const words& arguments) {
  spec_options wanted;
  config_options config;
  run_request request;
  std::optional<std::string> pty, violations;
  option_parser parser("run", "[options] [--] COMMAND [ARGUMENT…]",
                       "Runs COMMAND in an enclosure and answers its exit code.", word_form::command);
  declare(parser, wanted);
  parser.group("Output");
  parser.flag("--json", request.json, "Print the handle and the events as JSON lines");
  parser.value("--violations", violations, std::string(violations_modes),
               "What is told of refused actions: a summary at the end, or each as it comes");
  parser.flag("-q,--quiet", request.quiet, "Print no warnings, and no summary of what was refused");
  parser.value("--pty", pty, "auto|always|never", "Whether the command gets a terminal of its own");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {{"COMMAND"}, true, "ccbox run -- make test"});
  if (p.finished) return p.exit_code;

  const auto refuse = [&](const error& e) {
    if (request.json) print(json_error_line(e));
    return report(e);
  };
  if (p.rest[0].empty())
    return refuse({error_code::invalid_argument, "the command is empty", parser.usage()});
  if (pty && *pty != "auto") {
    if (*pty != "always" && *pty != "never") {
      return refuse({error_code::invalid_argument, "--pty " + quoted(*pty) + ": no such choice",
                     "auto, always or never"});
    }
    request.pty = *pty == "always" ? run_request::pty_use::always : run_request::pty_use::never;
  }
  // The events of --json have them already.
  if (request.json || request.quiet) request.violations = violations_mode::none;
  if (violations) {
    const auto mode = violations_mode_from_name(*violations);
    if (!mode)
      return refuse({error_code::invalid_argument, "--violations " + quoted(*violations) + ": no such choice",
                     "none, summary, all or json"});
    request.violations = *mode;
  }
  host_facts host = gather_host_facts();
  if (host.uid == 0) host.private_in_etc = begin_private_in_etc();
  auto sandbox = build_request(wanted, host);
  if (!sandbox) return refuse(sandbox.error());
  const auto which = sandbox->spec.backend.value_or("").empty() ? plugin_choice::needed : plugin_choice::all;
  auto context = load_context(config, CCBOX_PROBE_QUICK, std::move(host), which);
  if (!context) return refuse(context.error());
  (*context)->ticketing = wanted.ticketing;
  if (!request.quiet && !request.json)
    for (const std::string& warning : warnings_about(*sandbox, (*context)->config.environment))
      warn(warning);
  request.origins = std::move(sandbox->origins);
  request.spec = std::move(sandbox->spec);
  request.env = std::move(sandbox->env);
  request.command = std::move(p.rest);
  const int code = run_in_enclosure(**context, std::move(request));
  // What plugins still hold is written; the rest ends with the process.
  (*context)->plugins.reset();
  [[maybe_unused]] static const sandbox_setup* const ended = context->release();
  return code;
}

}  // namespace ccbox
