#include "spec_options.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "context.hpp"
#include "default_bind.hpp"
#include "environment.hpp"
#include "path_spelling.hpp"
#include "quantity.hpp"
#include "spec_source.hpp"

namespace ccbox {

void declare(option_parser& parser, spec_options& o) {
  parser.group("Files");
  parser.list("--bind", o.bind, "PATH[:GUEST]", "Make PATH visible and writable (at GUEST)");
  parser.list("--ro", o.read_only, "PATH[:GUEST]", "Make PATH visible read-only (at GUEST)");
  parser.list("--mount", o.mount, "PATH GUEST ro|rw", "Like --bind or --ro, for paths that have a colon", 3);
  parser.value("--workdir", o.workdir, "GUEST",
               "Directory inside in which the command starts; a relative one "
               "is below where it would start otherwise");
  parser.list("--protect", o.protect, "PATH", "Never writable, also inside a writable directory");
  parser.list("--state-dir", o.state_dirs, "PATH", "Writable in every mode");
  parser.list("--exec-grant", o.exec_grants, "PATH",
              "Programs below PATH may be executed, where writable directories "
              "are kept from it (macOS)");
  parser.group("Sandbox");
  parser.value("--mode", o.mode, "MODE",
               "chat (default), or review, plan, orchestrate: binds become read-only");
  parser.value("--backend", o.backend, "NAME", "native, none, or the name of a backend plugin");
  parser.list("--without", o.without, "RULE", "Give up one rule, such as fs_name_deny");
  parser.value("--spec", o.spec_file, "FILE",
               "Start from the sandbox spec in this JSON file; - is standard input");
  parser.value("--spec-json", o.spec_json, "JSON", "Start from this sandbox spec");
  parser.value("--session", o.session, "ID", "Name of the session instead of a random one");
  parser.group("Environment and network");
  parser.list("--env", o.env, "NAME[=VALUE]", "Set a variable; NAME alone passes the caller's value");
  parser.flag("--no-network", o.no_network, "Refuse every destination");
  parser.list("--allow-domain", o.allow_domains, "DOMAIN", "Add to the destinations that may be reached");
  parser.list("--ticketing", o.ticketing, "GROUP",
              "Allow a ticketing group of the egress file, such as linear");
  parser.group("Limits");
  parser.value("--memory", o.memory, "SIZE", "Memory of the whole session, such as 512M or 2G");
  parser.value("--cpus", o.cpus, "NUMBER", "Processors, such as 1.5");
  parser.value("--processes", o.processes, "NUMBER", "Processes and threads");
  parser.value("--file-size", o.file_size, "SIZE", "Largest file that may be written");
  parser.value("--timeout", o.timeout, "TIME", "Wall time, such as 90, 30s, 5m or 2h");
}

namespace {

std::string element(const char* list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

// What is wrong with the path that the option was given, in the option's name.
error naming(error e, const std::string& option, const std::string& typed) {
  e.what = option + " " + quoted(typed) + ": " + e.what;
  return e;
}

// Host paths with `..` are resolved, because dropping a component in front of it would be wrong behind a
// link.
result<std::string> host_path(const std::string& path, const host_facts& host) {
  auto absolute = absolute_path(path, host);
  if (!absolute) return absolute;
  const bool climbs = ("/" + path + "/").find("/../") != std::string::npos;
  if (!climbs) return absolute;
  char resolved[PATH_MAX];
  if (!::realpath(absolute->c_str(), resolved)) return system_error("realpath", *absolute, errno);
  return std::string(resolved);
}

result<void> add_mount(requested_sandbox& wanted, const host_facts& host, const std::string& option,
                       const std::string& path, const std::string& guest, bool read_only) {
  if (path.empty())
    return bad_value(option, guest.empty() ? "" : ":" + guest, "an empty path", "name a file or directory");
  auto absolute = host_path(path, host);
  if (!absolute) return naming(absolute.error(), option, path);
  if (!guest.empty() && guest.front() != '/') {
    return bad_value(option, path + ":" + guest, "the path inside must be absolute",
                     "a path that has a colon is given as --mount PATH GUEST ro|rw");
  }
  auto& mounts = wanted.spec.bind_mounts;
  wanted.origins.add(element("bindMounts", mounts.size()), option, path + (guest.empty() ? "" : ":" + guest));
  mounts.push_back({*absolute, guest.empty() ? *absolute : guest, read_only});
  return {};
}

result<void> add_mounts(requested_sandbox& wanted, const spec_options& options, const host_facts& host) {
  for (const bool read_only : {false, true}) {
    const std::string option = read_only ? "--ro" : "--bind";
    for (const std::string& word : read_only ? options.read_only : options.bind) {
      const auto colon = word.find(':');
      if (colon != std::string::npos &&
          (word.find(':', colon + 1) != std::string::npos || colon + 1 == word.size())) {
        return bad_value(option, word, "one path, or two with one colon between them",
                         "a path that has a colon is given as --mount PATH GUEST ro|rw");
      }
      const std::string guest = colon == std::string::npos ? "" : word.substr(colon + 1);
      if (auto ok = add_mount(wanted, host, option, word.substr(0, colon), guest, read_only); !ok) return ok;
    }
  }
  for (std::size_t i = 0; i + 2 < options.mount.size(); i += 3) {
    const std::string& access = options.mount[i + 2];
    if (access != "ro" && access != "rw") {
      return bad_value("--mount", access, "the third word is ro or rw", "--mount PATH GUEST ro|rw");
    }
    if (options.mount[i + 1].empty()) return bad_value("--mount", "", "the path inside is empty", {});
    if (auto ok = add_mount(wanted, host, "--mount", options.mount[i], options.mount[i + 1], access == "ro");
        !ok) {
      return ok;
    }
  }
  return {};
}

// The current directory, unless that would hand over more than a project.
result<void> bind_current_directory(requested_sandbox& wanted, const host_facts& host) {
  if (const auto why = why_not_bound_by_default(host)) {
    return error{error_code::invalid_argument, "nothing is bound, and " + *why,
                 "change to a project's directory, or name what may be written with --bind PATH"};
  }
  const std::string& directory = host.current_directory;
  sandbox_spec& spec = wanted.spec;
  wanted.origins.add(element("bindMounts", spec.bind_mounts.size()), "the current directory", directory);
  spec.bind_mounts.push_back({directory, directory, false});
  spec.guest_workdir = spec.guest_workdir.value_or(directory);
  return {};
}

// A relative --workdir is below where the command would start without it.
result<void> place_workdir(sandbox_spec& spec, const std::string& typed) {
  if (typed.empty() || typed.front() == '/') {
    spec.guest_workdir = typed;
    return {};
  }
  if (!spec.guest_workdir)
    return bad_value("--workdir", typed, "is relative, and the current directory is not visible inside",
                     "write it from '/' on, as it is inside");
  const std::string below = normalise_path("/" + typed);
  if (("/" + typed + "/").find("/../") != std::string::npos)
    return bad_value("--workdir", typed, "has `..` as a component", "write it from '/' on, as it is inside");
  if (below != "/") spec.guest_workdir = (*spec.guest_workdir == "/" ? "" : *spec.guest_workdir) + below;
  return {};
}

// What the person typed and what the spec says, as opposed to a spec that says both: its list is then empty
// by the specification.
result<void> check_network_wish(const spec_options& options, const sandbox_spec& spec) {
  const bool wants = !options.allow_domains.empty() || !options.ticketing.empty();
  if (!wants || (spec.network_enabled && spec.capabilities.network)) return {};
  const std::string option = options.allow_domains.empty() ? "--ticketing" : "--allow-domain";
  if (options.no_network)
    return error{error_code::invalid_argument, option + " and --no-network contradict each other",
                 "with the network off every destination is refused: leave one of them out"};
  return error{error_code::invalid_argument,
               option + ": the spec switches the network off (" +
                   (spec.network_enabled ? "capabilities.canAccessNetwork" : "networkEnabled") + ")",
               "with the network off every destination is refused: leave the option out, or change the spec"};
}

// The current directory as the enclosure sees it, where a mount shows it.
void default_workdir(sandbox_spec& spec, const host_facts& host) {
  if (spec.guest_workdir || host.current_directory.empty()) return;
  const sandbox_bind_mount* best = nullptr;
  for (const sandbox_bind_mount& mount : spec.bind_mounts) {
    const bool covers = host.current_directory == mount.host_path || mount.host_path == "/" ||
                        host.current_directory.starts_with(mount.host_path + "/");
    if (covers && (!best || mount.host_path.size() >= best->host_path.size())) best = &mount;
  }
  if (!best) return;
  const std::string guest = best->guest_path.empty() ? best->host_path : best->guest_path;
  const std::string below =
      best->host_path == "/" ? host.current_directory : host.current_directory.substr(best->host_path.size());
  spec.guest_workdir = guest == "/" && !below.empty() ? below : guest + below;
}

template <class T>
result<void> set_limit(std::optional<T>& limit, const char* option, const std::optional<std::string>& text,
                       result<T> (*parse)(std::string_view, std::string_view)) {
  if (!text) return {};
  auto value = parse(option, *text);
  if (!value) return value.error();
  limit = *value;
  return {};
}

result<void> add_limits(resource_limits& limits, const spec_options& o) {
  if (auto ok = set_limit(limits.memory_bytes, "--memory", o.memory, parse_size); !ok) return ok;
  if (auto ok = set_limit(limits.file_size_bytes, "--file-size", o.file_size, parse_size); !ok) return ok;
  if (auto ok = set_limit(limits.wall_time_ms, "--timeout", o.timeout, parse_duration_ms); !ok) return ok;
  if (auto ok = set_limit(limits.cpus, "--cpus", o.cpus, parse_number); !ok) return ok;
  return set_limit(limits.processes, "--processes", o.processes, parse_count);
}

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

result<std::vector<std::pair<std::string, std::string>>> requested_environment(const spec_options& options,
                                                                               const host_facts& host) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& word : options.env) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (!is_identifier(name))
      return bad_value("--env", name.empty() ? word : name,
                       name.empty() ? "no variable's name" : "not a variable's name",
                       "--env NAME or NAME=VALUE; a name has letters, digits and _");
    if (equals != std::string::npos) {
      out.emplace_back(name, word.substr(equals + 1));
    } else if (const auto value = host.environment.find(name); value != host.environment.end()) {
      out.emplace_back(name, value->second);
    } else {
      return bad_value("--env", name, "is not set in the caller's environment",
                       "set it first, or give a value: --env " + name + "=VALUE");
    }
  }
  return out;
}

}  // namespace

result<requested_sandbox> build_request(const spec_options& options, const host_facts& host) {
  if (options.spec_file && options.spec_json) {
    return error{error_code::invalid_argument, "--spec and --spec-json exclude each other", {}};
  }
  auto source = options.spec_file   ? spec_from_file(*options.spec_file)
                : options.spec_json ? spec_from_json(*options.spec_json)
                                    : result<written_spec>(written_spec{fresh_spec()});
  if (!source) return source.error();
  requested_sandbox wanted{std::move(source->spec), {}, {}};
  sandbox_spec& spec = wanted.spec;
  option_origins& origins = wanted.origins;
  const auto take = [&](const char* key, const char* option, const std::optional<std::string>& typed) {
    if (typed) origins.add(key, option, *typed);
  };
  take("sessionId", "--session", options.session);
  take("backend", "--backend", options.backend);
  take("guestWorkdir", "--workdir", options.workdir);
  take("limits.memoryBytes", "--memory", options.memory);
  take("limits.cpus", "--cpus", options.cpus);
  take("limits.processes", "--processes", options.processes);
  take("limits.fileSizeBytes", "--file-size", options.file_size);
  take("limits.wallTimeMs", "--timeout", options.timeout);
  if (options.session) spec.session_id = *options.session;
  if (options.backend) spec.backend = *options.backend;
  if (options.mode) {
    const auto mode = sandbox_mode_from_name(*options.mode);
    if (!mode) {
      return bad_value("--mode", *options.mode, "no such mode",
                       "the modes are chat, review, plan and orchestrate");
    }
    spec.mode = *mode;
  }
  if (options.no_network) spec.network_enabled = false;
  if (auto ok = check_network_wish(options, spec); !ok) return ok.error();
  if (auto ok = add_mounts(wanted, options, host); !ok) return ok.error();
  struct list_option {
    const char *key, *option;
    const std::vector<std::string>& typed;
    std::vector<std::string>& list;
    bool paths;
  };
  for (const list_option& l :
       {list_option{"protectedPaths", "--protect", options.protect, spec.protected_paths, true},
        {"runnerStateDirs", "--state-dir", options.state_dirs, spec.runner_state_dirs, true},
        {"execGrantRoots", "--exec-grant", options.exec_grants, spec.exec_grant_roots, true},
        {"egressAllowlist", "--allow-domain", options.allow_domains, spec.egress_allowlist, false},
        {"without", "--without", options.without, spec.without, false}}) {
    for (const std::string& typed : l.typed) {
      auto value = l.paths ? host_path(typed, host) : result<std::string>(typed);
      if (!value) return naming(value.error(), l.option, typed);
      origins.add(element(l.key, l.list.size()), l.option, typed);
      l.list.push_back(*value);
    }
  }
  if (!options.ticketing.empty()) spec.capabilities.call_ticketing = true;
  if (auto ok = add_limits(spec.limits, options); !ok) return ok.error();
  auto env = requested_environment(options, host);
  if (!env) return env.error();

  wanted.env = std::move(*env);
  if (spec.bind_mounts.empty() && !source->says_mounts) {
    if (auto ok = bind_current_directory(wanted, host); !ok) return ok.error();
  }
  default_workdir(spec, host);
  if (options.workdir)
    if (auto ok = place_workdir(spec, *options.workdir); !ok) return ok.error();
  if (auto ok = validate(spec); !ok) return origins.translated(ok.error());
  return wanted;
}

std::vector<std::string> warnings_about(const requested_sandbox& request, const environment_config& config) {
  std::vector<dropped_variable> dropped;
  strip_injection({request.env.begin(), request.env.end()}, config, &dropped);
  std::vector<std::string> out;
  out.reserve(dropped.size());
  for (const auto& variable : dropped)
    out.push_back("--env " + variable.name + ": " + variable.reason +
                  "; it is passed because it was named, and may change what programs run");
  return out;
}

}  // namespace ccbox
