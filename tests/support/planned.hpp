// A plan asked of a built plugin straight through the ABI, without loader, policy or registry: for tests that
// are about the plugin alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ccbox/plugin.h"
#include "plan.hpp"

namespace ccbox::test {

struct planned_rule {
  ccbox_rule_kind kind = CCBOX_KIND_MOUNT;
  std::uint32_t flags = 0;
  std::uint64_t bit = 0;
  std::string path, guest_path;
};

// Rules as the policy makes them. The flags EXISTS, DIRECTORY and SYMLINK come from the caller: golden plans
// are about paths that no host has.
planned_rule mount_rule(const std::string& path, std::uint32_t flags, const std::string& guest = {});
planned_rule read_deny_rule(const std::string& path, std::uint32_t flags);
planned_rule write_deny_rule(const std::string& path, std::uint32_t flags);
// The same with those three flags as the host has them now.
planned_rule as_found(planned_rule rule);

struct planned_request {
  std::vector<planned_rule> rules;
  std::uint64_t required = 0, waived = 0;
  std::string workdir = "/", home = "/home/u", tmpdir = "/tmp";
  ccbox_network network = CCBOX_NETWORK_PROXY_ONLY;
  std::uint32_t uid = 1000, gid = 1000;
  std::string init_path = "/usr/lib/ccbox/ccbox-init";
};

struct planned_answer {
  ccbox_status status = CCBOX_OK;
  std::string error;
  plan planned;
};

class built_plugin {
 public:
  using option_list = std::vector<std::pair<std::string, std::string>>;

  // `name`: bubblewrap or none, of this build tree. Throws std::runtime_error with the plugin's own text.
  explicit built_plugin(const std::string& name, const option_list& options = {});
  ~built_plugin();
  built_plugin(const built_plugin&) = delete;
  built_plugin& operator=(const built_plugin&) = delete;

  planned_answer ask(const planned_request& request) const;
  struct probed {
    ccbox_status status = CCBOX_OK;
    bool available = false, requires_install = false;
    std::uint64_t enforced = 0;
    std::string note, hint, cause, error;
  };
  probed probe(ccbox_probe_depth depth,
               const std::string& init_path = CCBOX_TEST_BINARY_DIR "/bin/ccbox-init") const;
  std::string kind() const;

 private:
  const ccbox_plugin_descriptor* descriptor_ = nullptr;
  ccbox_plugin* plugin_ = nullptr;
  const ccbox_backend* backend_ = nullptr;
};

// The words of the plan's sealed argument file.
std::vector<std::string> bwrap_arguments(const plan& p);

}  // namespace ccbox::test
