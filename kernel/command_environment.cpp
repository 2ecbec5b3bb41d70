#include <algorithm>

#include "policy.hpp"
#include "policy_mounts.hpp"

namespace ccbox {

namespace {

constexpr std::string_view default_path[] = {"/usr/local/bin", "/usr/bin", "/bin"};

// Where programs may be taken from: seen inside, and nothing the run itself could have put there.
bool is_program_directory(const policy& p, const std::string& directory) {
  if (!directory.starts_with('/') || (directory + "/").find("/../") != std::string::npos) return false;
  if (is_reserved_place(directory)) return false;
  const auto answer = check_path(p, directory);
  if (!answer.visible || !answer.readable || answer.writable || answer.creatable) return false;
  // Writable for a file in it, where the directory itself is no rule's business.
  const auto inside = check_path(p, join_path(directory, "program"));
  return !inside.creatable;
}

std::string rebuild_path(const policy& p, const host_facts& host) {
  std::vector<std::string> kept;
  const auto keep = [&](std::string directory) {
    if (std::find(kept.begin(), kept.end(), directory) == kept.end()) kept.push_back(std::move(directory));
  };
  if (const auto path = host.environment.find("PATH"); path != host.environment.end()) {
    std::string_view rest = path->second;
    while (!rest.empty()) {
      const auto colon = rest.find(':');
      const auto entry = rest.substr(0, colon);
      rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
      std::string directory = normalise_path(entry);
      if (is_program_directory(p, directory)) keep(std::move(directory));
    }
  }
  for (const auto directory : default_path)
    keep(std::string(directory));
  std::string out;
  for (const auto& directory : kept)
    out += (out.empty() ? "" : ":") + directory;
  return out;
}

}  // namespace

environment command_environment(const policy& p, const host_facts& host, const policy_config& config) {
  auto out = sanitise_environment(host.environment, config.environment);
  out["PATH"] = rebuild_path(p, host);
  out["HOME"] = p.home;
  out["TMPDIR"] = p.tmpdir;
  out["SHELL"] = "/bin/bash";
  out["XDG_CONFIG_HOME"] = join_path(p.home, ".config");
  out["XDG_CACHE_HOME"] = join_path(p.home, ".cache");
  out["XDG_DATA_HOME"] = join_path(p.home, ".local/share");
  out["XDG_STATE_HOME"] = join_path(p.home, ".local/state");
  // git's templates bring samples that nobody needs, and may bring hooks, which a name rule forbids.
  if (p.required & CCBOX_RULE_FS_NAME_DENY) out["GIT_TEMPLATE_DIR"] = "";
  return out;
}

}  // namespace ccbox
