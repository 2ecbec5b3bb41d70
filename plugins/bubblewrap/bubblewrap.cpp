// Backend `bubblewrap`: Linux namespaces through bwrap, and ccbox-broker for names that do not exist yet. It
// plans mounts, namespaces and the broker's orders; executing and a kernel boundary are beyond it and never
// claimed.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "ccbox/plugin.hpp"
#include "diagnosis.hpp"
#include "floor.hpp"
#include "host_tree.hpp"
#include "name_support.hpp"
#include "paths.hpp"
#include "tools.hpp"
#include "trial.hpp"
#include "view.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr std::uint64_t enforceable = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_FS_READ_DENY |
                                      CCBOX_RULE_FS_WRITE_DENY | CCBOX_RULE_NET_PROXY_ONLY |
                                      CCBOX_RULE_PID_ISOLATION | CCBOX_RULE_RESOURCE_LIMITS;
// Of the five seconds that a full probe may take.
constexpr unsigned names_limit_ms = 3000, trials_limit_ms = 4000, least_limit_ms = 1000;

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

  plugin::probe_answer probe(ccbox_probe_depth) override {
    auto answer = nothing_known();
    if (missing_tools(answer)) return answer;
    if (const auto trouble = diagnose_signs(read_host_signs())) return with(answer, *trouble);
    return available(answer, diagnose_name_signs(read_name_signs()));
  }

  // Names are claimed where floor and broker have just refused one.
  plugin::probe_answer probe_fully(std::string_view init_path) override {
    auto answer = nothing_known();
    if (missing_tools(answer)) return answer;
    const auto start = std::chrono::steady_clock::now();
    const auto signs = read_host_signs();
    auto lacking = lacking_for_names(init_path);
    if (!lacking) {
      const auto outcome = try_names(host_, init_path, names_limit_ms);
      if (outcome.succeeded) return available(answer, std::nullopt);
      lacking = diagnose_name_trial(outcome, signs);
    }
    const auto spent =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)
            .count();
    const auto left = std::max<long>(trials_limit_ms - spent, least_limit_ms);
    const auto outcome = try_enclosure(host_, static_cast<unsigned>(left));
    if (!outcome.succeeded) return with(answer, diagnose_trial(outcome, signs));
    return available(answer, lacking);
  }

  void plan(const plugin::plan_request& request, plugin::plan_sink& sink) override {
    if (host_.bwrap.empty())
      throw plugin::failure(CCBOX_UNAVAILABLE, not_found("bwrap", bwrap_option_) +
                                                   ": sudo apt-get install bubblewrap, then start again");
    const real_host_tree tree;
    const view v(request, tree);
    const auto lacking = diagnose_name_signs(read_name_signs());
    const auto names = lacking ? std::nullopt : plan_guard(request, v);
    write_arguments(request, host_, v, names, sink);
    for (const auto& rule : request.rules())
      if (const auto layer = v.layers().find(rule.index); layer != v.layers().end())
        sink.layer(rule, layer->second);
      else if (is_name_rule(rule) && !request.is_waived(rule))
        sink.layer(rule, lacking ? "nobody: " + lacking->hint : layer_of_names(rule));
    auto enforced = enforceable & ~v.unenforced();
    if (!lacking) enforced |= CCBOX_RULE_FS_NAME_DENY & ~v.unenforced();
    if (request.network() == CCBOX_NETWORK_HOST) enforced &= ~CCBOX_RULE_NET_PROXY_ONLY;
    sink.enforces(enforced);
  }

 private:
  static plugin::probe_answer nothing_known() {
    plugin::probe_answer answer;
    answer.note = "bubblewrap — namespace isolation, no kernel boundary";
    return answer;
  }

  static plugin::probe_answer with(plugin::probe_answer answer, const diagnosis& trouble) {
    answer.cause = trouble.cause;
    answer.hint = trouble.hint;
    return answer;
  }

  static plugin::probe_answer available(plugin::probe_answer answer,
                                        const std::optional<diagnosis>& lacking_for_names) {
    answer.available = true;
    answer.enforced = enforceable | (lacking_for_names ? 0 : CCBOX_RULE_FS_NAME_DENY);
    return lacking_for_names ? with(answer, *lacking_for_names) : answer;
  }

  static std::optional<diagnosis> lacking_for_names(std::string_view init_path) {
    if (auto lacking = diagnose_name_signs(read_name_signs())) return lacking;
    if (init_path.empty())
      return diagnosis{"no-init",
                       "whoever asks does not say where ccbox-init is, and name rules cannot be tried "
                       "without it: ask with ccbox probe"};
    return diagnose_broker(broker_beside(init_path));
  }

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
