#include "sandbox_spec.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

#include "json_reader.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

constexpr std::size_t max_session_id_bytes = 64;
constexpr std::size_t max_id_bytes = 256;
constexpr std::size_t max_domain_bytes = 512;
constexpr std::size_t max_path_bytes = 4095;  // PATH_MAX without its terminator

struct mode_name {
  sandbox_mode mode;
  std::string_view name;
};
constexpr mode_name mode_names[] = {{sandbox_mode::chat, "chat"},
                                    {sandbox_mode::review, "review"},
                                    {sandbox_mode::plan, "plan"},
                                    {sandbox_mode::orchestrate, "orchestrate"}};

std::string element(std::string_view key, std::size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
}

std::string waivable_names() {
  std::string names;
  for (const auto& entry : all_rule_bits())
    if (entry.waivable) (names += names.empty() ? "" : ", ") += entry.name;
  return names;
}

// The checks on values. The first that fails is kept; the key is the JSON spelling.
class checker {
 public:
  std::optional<error> failure;

  void fail(const std::string& key, const std::string& what, std::string hint = {}) {
    if (!failure) failure = json_error(key, what, std::move(hint));
  }

  void text(const std::string& key, std::string_view value, std::size_t most, bool may_be_empty) {
    if (value.empty() && !may_be_empty)
      fail(key, "must not be empty");
    else if (value.find('\0') != value.npos)
      fail(key, "must not contain NUL bytes");
    else if (value.size() > most)
      fail(key, "is longer than " + std::to_string(most) + " bytes");
  }

  void path(const std::string& key, std::string_view value) {
    text(key, value, max_path_bytes, false);
    if (!failure && value.front() != '/') {
      fail(key, "must be an absolute path, not " + quoted_excerpt(value),
           "write it from '/' on; '~' and '.' are not expanded");
    }
  }

  void paths(std::string_view key, const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < values.size() && !failure; ++i)
      path(element(key, i), values[i]);
  }

  void range(const std::string& key, const std::optional<std::uint64_t>& value, std::uint64_t least,
             std::uint64_t most, const std::string& why = {}) {
    if (value && (*value < least || *value > most)) {
      fail(key,
           "must be from " + std::to_string(least) + " to " + std::to_string(most) + ", not " +
               std::to_string(*value) + why,
           "leave the key out for no limit");
    }
  }
};

void check_session_id(checker& c, std::string_view id) {
  const bool good = std::all_of(id.begin(), id.end(), [](unsigned char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '.' ||
           ch == '_' || ch == '-';
  });
  if (id.empty() || id.size() > max_session_id_bytes || !good || id.front() == '.' || id.front() == '-') {
    c.fail("sessionId",
           id.size() > max_session_id_bytes ? "is longer than 64 bytes" : quoted(id) + " is no session id",
           "1 to 64 of A-Z a-z 0-9 . _ - and not '.' or '-' first");
  }
}

void check_limits(checker& c, const resource_limits& limits) {
  constexpr std::uint64_t least_memory_bytes = 4 << 20;        // a dynamic program's own libraries and stack
  constexpr std::uint64_t most_bytes = INT64_MAX;              // what cgroups and rlimits take
  constexpr std::uint64_t most_processes = 4194304;            // the kernel's own highest pid
  constexpr std::uint64_t most_ms = 100ull * 365 * 86400'000;  // a century: the clock counts 292 years in ns
  c.range("limits.memoryBytes", limits.memory_bytes, least_memory_bytes, most_bytes,
          ": no program starts with less than 4M");
  c.range("limits.processes", limits.processes, 1, most_processes);
  c.range("limits.fileSizeBytes", limits.file_size_bytes, 1, most_bytes);
  c.range("limits.wallTimeMs", limits.wall_time_ms, 1, most_ms);
  // Negated so that it catches NaN too.
  if (limits.cpus && !(*limits.cpus >= 0.01 && *limits.cpus <= 8192))
    c.fail("limits.cpus", "must be from 0.01 to 8192", "leave the key out for no limit");
}

void check_without(checker& c, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& bits = all_rule_bits();
    const auto found =
        std::find_if(bits.begin(), bits.end(), [&](const auto& b) { return b.name == names[i]; });
    if (found == bits.end())
      c.fail(element("without", i), quoted_excerpt(names[i]) + " is no rule",
             "rules that may be given up: " + waivable_names());
    else if (!found->waivable)
      c.fail(element("without", i), quoted_excerpt(names[i]) + " may not be given up",
             "backend 'none' runs without an enclosure");
  }
}

void read_bind_mounts(const json::value& value, std::vector<sandbox_bind_mount>& out,
                      std::optional<error>& failure) {
  const auto* array = value.if_array();
  if (!array) {
    failure = json_error("bindMounts", "must be an array, not " + std::string(json_kind(value)));
    return;
  }
  for (std::size_t i = 0; i < array->size() && !failure; ++i) {
    sandbox_bind_mount mount;
    json_object_reader reader((*array)[i], element("bindMounts", i), failure);
    reader.required("hostPath", mount.host_path);
    std::optional<std::string> guest;
    reader.optional("guestPath", guest);
    reader.optional("readOnly", mount.read_only);
    reader.no_other_keys();
    if (guest && guest->empty() && !failure)
      failure = json_error(reader.path_of("guestPath"), "must not be empty");
    mount.guest_path = guest ? *guest : mount.host_path;
    out.push_back(std::move(mount));
  }
}

json::array to_json(const std::vector<std::string>& values) {
  json::array out;
  for (const auto& value : values)
    out.emplace_back(to_utf8(value));
  return out;
}

}  // namespace

std::string_view to_string(sandbox_mode mode) {
  for (const auto& entry : mode_names)
    if (entry.mode == mode) return entry.name;
  return "chat";
}

std::optional<sandbox_mode> sandbox_mode_from_name(std::string_view name) {
  for (const auto& entry : mode_names)
    if (entry.name == name) return entry.mode;
  return std::nullopt;
}

result<sandbox_spec> sandbox_spec_from_json(const json::value& value) {
  sandbox_spec spec;
  std::optional<error> failure;
  json_object_reader reader(value, "", failure);
  reader.required("sessionId", spec.session_id);
  reader.required("workspaceId", spec.workspace_id);
  reader.optional("agentId", spec.agent_id);
  if (const auto* mounts = reader.find("bindMounts", true))
    read_bind_mounts(*mounts, spec.bind_mounts, failure);
  reader.optional("networkEnabled", spec.network_enabled);
  reader.optional("egressAllowlist", spec.egress_allowlist);
  reader.optional("guestWorkdir", spec.guest_workdir);
  std::string mode{to_string(spec.mode)};
  reader.optional("mode", mode);
  if (const auto* member = reader.find("capabilities", false)) {
    json_object_reader capabilities(*member, "capabilities", failure);
    capabilities.optional("canAccessNetwork", spec.capabilities.network);
    capabilities.optional("canCallGitHubApi", spec.capabilities.call_github_api);
    capabilities.optional("canPush", spec.capabilities.push);
    capabilities.optional("canCallTicketing", spec.capabilities.call_ticketing);
    capabilities.no_other_keys();
  }
  reader.optional("protectedPaths", spec.protected_paths);
  reader.optional("runnerStateDirs", spec.runner_state_dirs);
  reader.optional("execGrantRoots", spec.exec_grant_roots);
  if (const auto* member = reader.find("limits", false)) {
    json_object_reader limits(*member, "limits", failure);
    limits.optional("memoryBytes", spec.limits.memory_bytes);
    limits.optional("cpus", spec.limits.cpus);
    limits.optional("processes", spec.limits.processes);
    limits.optional("fileSizeBytes", spec.limits.file_size_bytes);
    limits.optional("wallTimeMs", spec.limits.wall_time_ms);
    limits.no_other_keys();
    // Boost.JSON does not read every double back that it writes; thousandths it does.
    if (spec.limits.cpus) spec.limits.cpus = std::round(*spec.limits.cpus * 1000) / 1000;
  }
  reader.optional("backend", spec.backend);
  reader.optional("without", spec.without);
  reader.no_other_keys();
  if (failure) return *failure;

  const auto known_mode = sandbox_mode_from_name(mode);
  if (!known_mode) {
    return json_error("mode", quoted_excerpt(mode) + " is no mode", "chat, review, plan or orchestrate");
  }
  spec.mode = *known_mode;
  if (auto valid = validate(spec); !valid) return valid.error();
  return spec;
}

result<sandbox_spec> parse_sandbox_spec(std::string_view json_text) {
  const auto value = parse_json(json_text);
  if (!value) return value.error();
  return sandbox_spec_from_json(*value);
}

json::value to_json(const sandbox_spec& spec) {
  json::object out;
  out["sessionId"] = to_utf8(spec.session_id);
  out["workspaceId"] = to_utf8(spec.workspace_id);
  if (spec.agent_id) out["agentId"] = to_utf8(*spec.agent_id);
  json::array mounts;
  for (const auto& mount : spec.bind_mounts) {
    const auto& guest = mount.guest_path.empty() ? mount.host_path : mount.guest_path;
    mounts.push_back({{"hostPath", to_utf8(mount.host_path)},
                      {"guestPath", to_utf8(guest)},
                      {"readOnly", mount.read_only}});
  }
  out["bindMounts"] = std::move(mounts);
  out["networkEnabled"] = spec.network_enabled;
  out["egressAllowlist"] = to_json(spec.egress_allowlist);
  if (spec.guest_workdir) out["guestWorkdir"] = to_utf8(*spec.guest_workdir);
  out["mode"] = to_string(spec.mode);
  out["capabilities"] = {{"canAccessNetwork", spec.capabilities.network},
                         {"canCallGitHubApi", spec.capabilities.call_github_api},
                         {"canPush", spec.capabilities.push},
                         {"canCallTicketing", spec.capabilities.call_ticketing}};
  out["protectedPaths"] = to_json(spec.protected_paths);
  out["runnerStateDirs"] = to_json(spec.runner_state_dirs);
  out["execGrantRoots"] = to_json(spec.exec_grant_roots);
  if (spec.limits.any()) {
    json::object limits;
    if (spec.limits.memory_bytes) limits["memoryBytes"] = *spec.limits.memory_bytes;
    if (spec.limits.cpus) limits["cpus"] = *spec.limits.cpus;
    if (spec.limits.processes) limits["processes"] = *spec.limits.processes;
    if (spec.limits.file_size_bytes) limits["fileSizeBytes"] = *spec.limits.file_size_bytes;
    if (spec.limits.wall_time_ms) limits["wallTimeMs"] = *spec.limits.wall_time_ms;
    out["limits"] = std::move(limits);
  }
  if (spec.backend) out["backend"] = to_utf8(*spec.backend);
  if (!spec.without.empty()) out["without"] = to_json(spec.without);
  return out;
}

result<void> validate(const sandbox_spec& spec) {
  checker c;
  check_session_id(c, spec.session_id);
  c.text("workspaceId", spec.workspace_id, max_id_bytes, true);
  if (spec.agent_id) c.text("agentId", *spec.agent_id, max_id_bytes, true);
  for (std::size_t i = 0; i < spec.bind_mounts.size() && !c.failure; ++i) {
    const auto& mount = spec.bind_mounts[i];
    c.path(element("bindMounts", i) + ".hostPath", mount.host_path);
    if (!mount.guest_path.empty()) c.path(element("bindMounts", i) + ".guestPath", mount.guest_path);
  }
  for (std::size_t i = 0; i < spec.egress_allowlist.size() && !c.failure; ++i)
    c.text(element("egressAllowlist", i), spec.egress_allowlist[i], max_domain_bytes, false);
  if (spec.guest_workdir) c.path("guestWorkdir", *spec.guest_workdir);
  c.paths("protectedPaths", spec.protected_paths);
  c.paths("runnerStateDirs", spec.runner_state_dirs);
  c.paths("execGrantRoots", spec.exec_grant_roots);
  check_limits(c, spec.limits);
  if (spec.backend) c.text("backend", *spec.backend, max_id_bytes, false);
  check_without(c, spec.without);
  if (c.failure) return *c.failure;
  return {};
}

rule_bits waived_bits(const sandbox_spec& spec) {
  rule_bits bits = 0;
  for (const auto& name : spec.without)
    if (const auto bit = rule_bit_from_name(name)) bits |= *bit;
  return bits;
}

}  // namespace ccbox
