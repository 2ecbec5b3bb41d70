#include "sandbox_manager.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "limits.hpp"
#include "utf8.hpp"

namespace ccbox {
namespace {

constexpr std::size_t max_argument_bytes = (128 << 10) - 1;  // MAX_ARG_STRLEN with its NUL

// The first field that is no UTF-8, as error messages name fields ("bindMounts[2].hostPath"); empty: none.
// JSON would carry such bytes as something else, and the wrapped command would meet another path than the one
// that was checked.
std::string malformed_field(const sandbox_spec& spec) {
  const auto in_list = [](const std::string& name, const std::vector<std::string>& list) -> std::string {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!is_utf8(list[i])) return name + "[" + std::to_string(i) + "]";
    }
    return "";
  };
  for (std::size_t i = 0; i < spec.bind_mounts.size(); ++i) {
    const std::string mount = "bindMounts[" + std::to_string(i) + "].";
    if (!is_utf8(spec.bind_mounts[i].host_path)) return mount + "hostPath";
    if (!is_utf8(spec.bind_mounts[i].guest_path)) return mount + "guestPath";
  }
  if (!is_utf8(spec.workspace_id)) return "workspaceId";
  if (spec.agent_id && !is_utf8(*spec.agent_id)) return "agentId";
  if (spec.guest_workdir && !is_utf8(*spec.guest_workdir)) return "guestWorkdir";
  for (const auto& found :
       {in_list("egressAllowlist", spec.egress_allowlist), in_list("protectedPaths", spec.protected_paths),
        in_list("runnerStateDirs", spec.runner_state_dirs),
        in_list("execGrantRoots", spec.exec_grant_roots)}) {
    if (!found.empty()) return found;
  }
  return "";
}

result<std::string> spec_argument(const sandbox_spec& spec) {
  if (const std::string field = malformed_field(spec); !field.empty()) {
    return error{error_code::invalid_argument,
                 field + ": it is not UTF-8, and a wrapped command cannot carry it",
                 "launch through the sandbox port instead, or rename the path"};
  }
  std::string text = boost::json::serialize(to_json(spec));
  if (text.size() > max_argument_bytes) {
    return error{error_code::too_large,
                 "the spec is " + std::to_string(text.size()) + " bytes of JSON; one argument takes " +
                     std::to_string(max_argument_bytes),
                 "launch through the sandbox port instead"};
  }
  return text;
}

}  // namespace

sandbox_manager::sandbox_manager(sandbox_context context, std::string runner,
                                 std::vector<std::string> config_arguments)
    : context_(std::move(context)),
      runner_(std::move(runner)),
      config_arguments_(std::move(config_arguments)) {}

result<wrapped_command> sandbox_manager::wrap(const std::vector<std::string>& command,
                                              const sandbox_spec& spec) const {
  if (command.empty() || command[0].empty())
    return error{error_code::invalid_argument, "the command is empty", ""};
  for (const std::string& word : command) {
    if (word.find('\0') != word.npos) {
      return error{error_code::invalid_argument,
                   "the command " + quoted(command[0]) + " has a NUL byte in a word", ""};
    }
    if (word.size() > max_argument_bytes) {
      return error{error_code::too_large, "a word of the command " + quoted(command[0]) + " is too long", ""};
    }
  }
  const auto prepared = prepare(context_, spec);
  if (!prepared) return prepared.error();

  // What was decided here must not be decided otherwise there: by another working directory, or another best
  // backend.
  sandbox_spec pinned = spec;
  pinned.guest_workdir = prepared->rules.workdir;
  pinned.backend = prepared->chosen->name();
  const auto text = spec_argument(pinned);
  if (!text) return text.error();

  wrapped_command made;
  made.argv = {runner_, "run"};
  made.argv.insert(made.argv.end(), config_arguments_.begin(), config_arguments_.end());
  made.argv.insert(made.argv.end(), {"--spec-json", *text, "--"});
  made.argv.insert(made.argv.end(), command.begin(), command.end());
  // The runner builds the command's environment from its own, and finds the caller's home in it.
  environment env = command_environment(prepared->rules, context_.host, *context_.config);
  env["HOME"] = context_.host.home;
  made.env.assign(env.begin(), env.end());
  made.backend = prepared->chosen->name();
  made.warnings = prepared->rules.warnings;
  if (const auto limits = limit_mechanisms(spec.limits, !prepared->how.unconfined))
    for (const auto& [limit, mechanism] : *limits)
      if (limit == "memory" && mechanism == memory_by_process)
        made.warnings.emplace_back(memory_by_process_warning);
  return made;
}

}  // namespace ccbox
