// A check-list for people: what ccbox needs of this host, what it found, what to do about it.
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <fstream>
#include <optional>

#include "client_tools.hpp"
#include "commands.hpp"
#include "context.hpp"
#include "host.hpp"
#include "limits.hpp"
#include "output.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

enum class verdict { good, bad, information };

struct finding {
  verdict state;
  std::string subject;
  std::string found;
  std::string remedy;  // empty: nothing to do
};
using findings = std::vector<finding>;

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// Where a package puts it; the caller's PATH may lead anywhere.
std::optional<std::string> find_program(const std::string& program) {
  for (const char* directory : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
    if (::access((directory + program).c_str(), X_OK) == 0) return directory + program;
  }
  return std::nullopt;
}

void check_tool(findings& out, const std::string& tool, const std::string& package,
                const std::string& purpose) {
  const auto path = find_program(tool);
  out.push_back({path ? verdict::good : verdict::bad, tool, path.value_or("not installed"),
                 path ? "" : "install it, " + purpose + ": sudo apt-get install " + package});
}

// A kernel switch that must not have the value `bad`; one that does not exist is no obstacle.
void check_switch(findings& out, const std::string& name, const std::string& bad, const std::string& remedy) {
  std::string path = "/proc/sys/" + name;
  std::string dotted = name;
  for (char& c : dotted) {
    if (c == '/') c = '.';
  }
  const auto value = first_line(path);
  const bool obstacle = value && *value == bad;
  out.push_back({obstacle ? verdict::bad : verdict::good, dotted,
                 value.value_or("no such switch in this kernel"), obstacle ? remedy : ""});
}

void check_kernel(findings& out) {
  utsname name{};
  ::uname(&name);
  const std::string release = name.release;
  const bool is_wsl = release.find("icrosoft") != std::string::npos;
  out.push_back({verdict::information, "kernel",
                 std::string(name.sysname) + " " + release + (is_wsl ? " (WSL)" : ""), ""});
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  out.push_back(
      {verdict::information, "Landlock", abi > 0 ? "ABI " + std::to_string(abi) : "not available", ""});
  check_switch(out, "kernel/unprivileged_userns_clone", "0",
               "allow unprivileged user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1");
  check_switch(out, "user/max_user_namespaces", "0",
               "allow user namespaces: sudo sysctl user.max_user_namespaces=15000");
  check_switch(out, "kernel/apparmor_restrict_unprivileged_userns", "1",
               "AppArmor forbids user namespaces to unconfined programs: add a profile with `userns,` for "
               "/usr/bin/bwrap, or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0");
  if (inside_enclosure()) {
    out.push_back({verdict::bad, "enclosure around", "this is inside an enclosure of ccbox already",
                   "run ccbox outside of it: inside, new namespaces are refused"});
  }
  if (::access("/.dockerenv", F_OK) == 0 || ::access("/run/.containerenv", F_OK) == 0) {
    out.push_back(
        {verdict::information, "container", "this host is a container itself",
         "if bubblewrap cannot start: run the container with --security-opt seccomp=unconfined "
         "--security-opt systempaths=unconfined, or use --backend none inside and trust the container"});
  }
}

void check_file(findings& out, const std::string& subject, const std::string& path, mode_t wanted_bits) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    out.push_back({verdict::bad, subject, system_error("stat", path, errno).what, "install ccbox again"});
    return;
  }
  const bool safe_owner = status.st_uid == 0 || status.st_uid == ::geteuid();
  const bool safe_mode = (status.st_mode & 022) == 0;
  if (!safe_owner || !safe_mode) {
    out.push_back({verdict::bad, subject,
                   quoted(path) + (safe_owner ? " may be written by others" : " belongs to somebody else"),
                   "chown it to root or to you, and chmod go-w it"});
  } else if ((status.st_mode & wanted_bits) != wanted_bits) {
    out.push_back({verdict::bad, subject, quoted(path) + " is not executable", "chmod +x it"});
  } else {
    out.push_back({verdict::good, subject, quoted(path), ""});
  }
}

void add_failure(findings& out, const std::string& subject, const error& e) {
  out.push_back({verdict::bad, subject, e.what, e.hint});
}

void check_plugins(findings& out, const registry& plugins) {
  bool enclosed = false;
  for (const plugin_status& status : plugins.statuses()) {
    const std::string subject = "plugin " + (status.name.empty() ? quoted(status.path) : status.name);
    if (status.state == plugin_status::outcome::disabled) {
      out.push_back({verdict::information, subject, "disabled in the manifest", ""});
    } else if (status.failure) {
      add_failure(out, subject, *status.failure);
    } else if (status.probe && !status.probe->available) {
      out.push_back(
          {verdict::bad, subject, "cannot be used here: " + status.probe->note, status.probe->hint});
    } else if (status.probe) {
      enclosed = enclosed || encloses(plugins, status);
      out.push_back({verdict::good, subject, status.probe->note, ""});
      if (!status.probe->hint.empty())
        out.push_back({verdict::bad, subject, "enforces less here than it can: " + status.probe->cause,
                       status.probe->hint});
      const rule_bits missing = known_rule_bits() & ~status.probe->enforced;
      out.push_back({verdict::information, subject, "does not enforce " + join_rule_bits(missing), ""});
    } else {
      out.push_back({verdict::good, subject, "loaded", ""});
    }
  }
  out.push_back(
      {enclosed ? verdict::good : verdict::bad, "enclosure",
       enclosed ? "a backend that encloses commands works" : "no backend that encloses commands works",
       enclosed ? "" : "see above what failed and what is not enforced; until then `ccbox run` refuses"});
}

// What the programs of this host make of the proxies.
void check_client_tools(findings& out, const egress_config& config) {
  for (const client_tool& tool : client_tools()) {
    if (!find_program(tool.program)) continue;
    out.push_back({verdict::information, std::string("proxies: ") + tool.program, tool.works, tool.needs});
  }
  const std::string caveat = all_proxy_caveat(config);
  out.push_back({verdict::information, "proxies: ALL_PROXY",
                 caveat.empty() ? "every client takes it" : "socks5h", caveat});
}

void check_egress(findings& out, const config_options& options, const registry* plugins) {
  auto config = load_egress_config(options.egress.value_or(""));
  if (!config) return add_failure(out, "egress file", config.error());
  const egress_plugin* proxies = plugins ? plugins->find_egress() : nullptr;
  if (proxies) {
    if (auto fine = check_entries(*config, *proxies); !fine)
      return add_failure(out, "egress file", fine.error());
  }
  out.push_back({verdict::good, "egress file", quoted(config->file), ""});
  if (plugins) {
    const auto& all = plugins->statuses();
    const bool skipped =
        std::any_of(all.begin(), all.end(), [](const auto& s) { return s.failure.has_value(); });
    out.push_back({proxies   ? verdict::good
                   : skipped ? verdict::bad
                             : verdict::information,
                   "network",
                   proxies ? "through the proxies of plugin " + proxies->name()
                           : "no egress plugin: nothing is reachable",
                   proxies   ? ""
                   : skipped ? "see the plugins that failed above"
                             : "name egress.so in the manifest"});
  }
  check_client_tools(out, *config);
}

void check_limits(findings& out) {
  const limit_capability limits = probe_limits();
  for (const auto& [name, mechanism] :
       {std::pair{"memory", &limits.memory}, std::pair{"cpus", &limits.cpus},
        std::pair{"processes", &limits.processes}, std::pair{"file size", &limits.file_size},
        std::pair{"wall time", &limits.wall_time}}) {
    out.push_back({verdict::information, std::string("limit ") + name,
                   mechanism->empty() ? "cannot be set here" : *mechanism,
                   mechanism->empty()
                       ? "run as root, or in a cgroup that is delegated to this user (with systemd "
                         "and cgroup v2: systemd-run --user --scope -p Delegate=yes ccbox run "
                         "…); here: " +
                             limits.note
                       : ""});
  }
}

void check_parts(findings& out, const config_options& config) {
  auto parts = find_installation();
  if (!parts) return add_failure(out, "installation", parts.error());
  check_file(out, "ccbox-init", parts->init, S_IXUSR);
  check_file(out, "ccbox-net-connect", parts->net_connect, S_IXUSR);
  check_file(out, "ccbox-broker", parts->broker, S_IXUSR);
  check_file(out, "plugin directory", parts->plugin_directory, 0);
  auto policy = load_policy(config);
  if (policy)
    out.push_back({verdict::good, "policy file", quoted(policy->file), ""});
  else
    add_failure(out, "policy file", policy.error());
  auto plugin_list = load_manifest(config.plugins.value_or(parts->manifest), parts->plugin_directory);
  if (!plugin_list) return add_failure(out, "plugin manifest", plugin_list.error());
  out.push_back({verdict::good, "plugin manifest", quoted(plugin_list->file), ""});
  auto plugins = registry::build(*plugin_list, CCBOX_PROBE_FULL);
  if (plugins)
    check_plugins(out, **plugins);
  else
    add_failure(out, "plugins", plugins.error());
  check_egress(out, config, plugins ? plugins->get() : nullptr);
}

std::string mark(verdict state) {
  switch (state) {
    case verdict::good:
      return toned(tone::good, "ok  ");
    case verdict::bad:
      return toned(tone::bad, "FAIL");
    case verdict::information:
      break;
  }
  return toned(tone::attention, "info");
}

void print_text(const findings& all) {
  std::size_t widest = 0;
  for (const finding& f : all)
    widest = std::max(widest, f.subject.size());
  std::string text;
  for (const finding& f : all) {
    const std::string subject = printable(f.subject);
    text += mark(f.state) + "  " + subject + std::string(widest - std::min(widest, subject.size()) + 2, ' ') +
            printable(f.found) + "\n";
    if (!f.remedy.empty()) text += std::string(widest + 8, ' ') + "-> " + printable(f.remedy) + "\n";
  }
  print(text);
}

json::value to_json(const findings& all) {
  json::array list;
  for (const finding& f : all) {
    list.push_back(json::object{{"state", f.state == verdict::good  ? "ok"
                                          : f.state == verdict::bad ? "fail"
                                                                    : "info"},
                                {"subject", f.subject},
                                {"found", f.found},
                                {"remedy", f.remedy}});
  }
  return list;
}

}  // namespace

int doctor_command(const words& arguments) {
  config_options config;
  bool as_json = false;
  option_parser parser(
      "doctor", "[options]",
      "Checks this host and the installation, and says what to do. Exit code 1 if a check failed.",
      word_form::operands);
  parser.flag("--json", as_json, "Print one JSON document");
  declare(parser, config);
  parsed p = parse_or_report(parser, arguments, {});
  if (p.finished) return p.exit_code;

  findings all;
  check_kernel(all);
  check_tool(all, "bwrap", "bubblewrap", "it makes the enclosures");
  check_tool(all, "socat", "socat", "the specified bridge from their network to the proxies");
  check_parts(all, config);
  check_limits(all);

  bool failed = false;
  for (const finding& f : all)
    failed = failed || f.state == verdict::bad;
  if (as_json)
    print_json(json::object{{"healthy", !failed}, {"checks", to_json(all)}});
  else
    print_text(all);
  return failed ? 1 : 0;
}

}  // namespace ccbox
