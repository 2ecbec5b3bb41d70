#include "rule_bits.hpp"

namespace ccbox {

const std::vector<rule_bit_name>& all_rule_bits() {
  static const std::vector<rule_bit_name> bits = {
      {CCBOX_RULE_FS_BINDS_ONLY, "fs_binds_only", "nothing of the host is visible but what is bound", false},
      {CCBOX_RULE_FS_READ_DENY, "fs_read_deny", "secret paths cannot be read", true},
      {CCBOX_RULE_FS_WRITE_DENY, "fs_write_deny", "protected paths cannot be written, renamed or removed",
       true},
      {CCBOX_RULE_FS_NAME_DENY, "fs_name_deny", "files with protected names cannot be created", true},
      {CCBOX_RULE_EXEC_DENY, "exec_deny", "dangerous programs cannot be executed", true},
      {CCBOX_RULE_NET_PROXY_ONLY, "net_proxy_only", "no way out but the session's proxies", true},
      {CCBOX_RULE_PID_ISOLATION, "pid_isolation", "no process of the host is visible or can be signalled",
       false},
      {CCBOX_RULE_RESOURCE_LIMITS, "resource_limits", "limits on time, memory, processes and file size hold",
       true},
      {CCBOX_RULE_KERNEL_BOUNDARY, "kernel_boundary", "the workload runs on a kernel of its own", true},
  };
  return bits;
}

rule_bits known_rule_bits() {
  rule_bits all = 0;
  for (const auto& entry : all_rule_bits())
    all |= entry.bit;
  return all;
}

rule_bits permanent_rule_bits() {
  rule_bits all = 0;
  for (const auto& entry : all_rule_bits())
    if (!entry.waivable) all |= entry.bit;
  return all;
}

std::optional<rule_bits> rule_bit_from_name(std::string_view name) {
  for (const auto& entry : all_rule_bits())
    if (entry.name == name) return entry.bit;
  return std::nullopt;
}

std::string_view rule_bit_to_name(rule_bits one_bit) {
  for (const auto& entry : all_rule_bits())
    if (entry.bit == one_bit) return entry.name;
  return {};
}

std::vector<std::string> rule_bit_names(rule_bits bits) {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) {
    const rule_bits bit = rule_bits{1} << i;
    if (!(bits & bit)) continue;
    const auto name = rule_bit_to_name(bit);
    names.push_back(name.empty() ? "bit " + std::to_string(i) : std::string(name));
  }
  return names;
}

std::string join_rule_bits(rule_bits bits) {
  std::string out;
  for (const auto& name : rule_bit_names(bits)) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

}  // namespace ccbox
