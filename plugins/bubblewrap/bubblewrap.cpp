// Backend `bubblewrap`: Linux namespaces through bwrap, and ccbox-broker for names that do not exist yet. It
// plans mounts, namespaces and the broker's orders; executing and a kernel boundary are beyond it and never
// claimed.
#include <unistd.h>

#include "arguments.hpp"
#include "ccbox/plugin.hpp"
#include "diagnosis.hpp"
#include "floor.hpp"
#include "host_tree.hpp"
#include "paths.hpp"
#include "tools.hpp"
#include "trial.hpp"
#include "view.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr std::uint64_t enforceable = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_FS_READ_DENY |
                                      CCBOX_RULE_FS_WRITE_DENY | CCBOX_RULE_NET_PROXY_ONLY |
                                      CCBOX_RULE_PID_ISOLATION | CCBOX_RULE_RESOURCE_LIMITS;
constexpr unsigned trial_limit_ms = 4000;  // of the five seconds that a full probe may take

std::string path_option(plugin::options& options, std::string_view key) {
  auto path = options.text(key);
  if (!path.empty() && !normal_path(path))
    throw plugin::failure(
        CCBOX_INVALID, "option '" + std::string(key) + "' is " + shown(path) + ", expected an absolute path");
  return path;
}

class bubblewrap_backend : public plugin::backend {
 public:
  static constexpr std::string_view kind = "native";

  bubblewrap_backend(const plugin::host&, plugin::options& options)
      : bwrap_option_(path_option(options, "bwrap")), socat_option_(path_option(options, "socat")) {
    host_.bwrap = find_tool("bwrap", bwrap_option_);
    host_.cgroup_namespace = ::access("/proc/self/ns/cgroup", F_OK) == 0;
  }

  plugin::probe_answer probe(ccbox_probe_depth depth) override {
    plugin::probe_answer answer;
    answer.note = "bubblewrap — namespace isolation, no kernel boundary";
    if (missing_tools(answer)) return answer;
    const auto signs = read_host_signs();
    auto trouble = depth == CCBOX_PROBE_QUICK ? diagnose_signs(signs) : std::nullopt;
    if (depth != CCBOX_PROBE_QUICK) {
      const auto outcome = run_trial(host_, trial_limit_ms);
      if (!outcome.succeeded) trouble = diagnose_trial(outcome, signs);
    }
    if (trouble) {
      answer.cause = trouble->cause;
      answer.hint = trouble->hint;
      return answer;
    }
    answer.available = true;
    answer.enforced = enforceable;
    if (missing_for_names().empty()) answer.enforced |= CCBOX_RULE_FS_NAME_DENY;
    return answer;
  }

  void plan(const plugin::plan_request& request, plugin::plan_sink& sink) override {
    if (host_.bwrap.empty())
      throw plugin::failure(CCBOX_UNAVAILABLE, not_found("bwrap", bwrap_option_) +
                                                   ": sudo apt-get install bubblewrap, then start again");
    const real_host_tree tree;
    const view v(request, tree);
    const auto missing = missing_for_names();
    const auto names = missing.empty() ? plan_guard(request, v) : std::nullopt;
    write_arguments(request, host_, v, names, sink);
    for (const auto& rule : request.rules())
      if (const auto layer = v.layers().find(rule.index); layer != v.layers().end())
        sink.layer(rule, layer->second);
      else if (is_name_rule(rule) && !request.is_waived(rule))
        sink.layer(rule, missing.empty() ? layer_of_names : missing);
    auto enforced = enforceable & ~v.unenforced();
    if (missing.empty()) enforced |= CCBOX_RULE_FS_NAME_DENY & ~v.unenforced();
    if (request.network() == CCBOX_NETWORK_HOST) enforced &= ~CCBOX_RULE_NET_PROXY_ONLY;
    sink.enforces(enforced);
  }

 private:
  static std::string not_found(const char* name, const std::string& configured) {
    return configured.empty() ? std::string(name) + " is not installed"
                              : shown(configured) + " (option '" + name + "') is no executable program";
  }

  // bwrap starts enclosures; socat is the specified bridge from their network to the proxies.
  bool missing_tools(plugin::probe_answer& answer) const {
    std::string packages, missing;
    const auto need = [&](const char* name, const char* package, bool present,
                          const std::string& configured) {
      if (present) return;
      packages += std::string(" ") + package;
      missing += (missing.empty() ? "" : ", ") + not_found(name, configured);
    };
    need("bwrap", "bubblewrap", !host_.bwrap.empty(), bwrap_option_);
    need("socat", "socat", !find_tool("socat", socat_option_).empty(), socat_option_);
    if (packages.empty()) return false;
    answer.requires_install = true;
    answer.cause = "missing-tool";
    answer.hint = missing + ": sudo apt-get install" + packages;
    return true;
  }

  const std::string bwrap_option_, socat_option_;
  host_facilities host_;
};

}  // namespace

}  // namespace ccbox::bubblewrap

CCBOX_PLUGIN(ccbox::bubblewrap::bubblewrap_backend, "bubblewrap", "0.1.0")
