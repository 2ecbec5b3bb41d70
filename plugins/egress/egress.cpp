// Plugin `egress`: "ccbox.egress/1" with a pair of proxies a session, on threads of its own.
//
// Options: `threads` (each session lives on one of them), `auth` none or token, `decision_log` a file,
// `resolver` system or ip:port. Threads start with the first session.
#include <algorithm>
#include <map>
#include <mutex>

#include "ccbox/plugin.hpp"
#include "dns_resolver.hpp"
#include "proxy_pair.hpp"
#include "session_environment.hpp"
#include "system_resolver.hpp"

namespace {

using namespace ccbox::egress;
namespace plugin = ccbox::plugin;

std::unique_ptr<resolver> make_resolver(const std::string& option) {
  if (option == "system") return std::make_unique<system_resolver>();
  const auto at = parse_authority(option, 0);
  const auto* server = std::get_if<destination>(&at);
  if (!server || !server->is_address())
    throw plugin::failure(CCBOX_INVALID, "option 'resolver' is '" + option +
                                             "', expected system or the ip:port of a DNS server");
  return std::make_unique<dns_resolver>(dns_resolver::server{server->address(), server->port});
}

rule to_rule(const plugin::egress_rule& from) {
  rule out;
  switch (from.action) {
    case CCBOX_EGRESS_ALLOW:
      out.action = rule_action::allow;
      break;
    case CCBOX_EGRESS_DENY:
      out.action = rule_action::deny;
      break;
    case CCBOX_EGRESS_FLOOR:
      out.action = rule_action::floor;
      break;
    case CCBOX_EGRESS_RESOLVED:
      out.action = rule_action::resolved;
      break;
    default:
      throw plugin::failure(CCBOX_INVALID, "a rule has the action " + std::to_string(from.action) +
                                               ", which this plugin does not know");
  }
  if ((from.flags & ~static_cast<std::uint32_t>(CCBOX_EGRESS_GIT_HOST)) != 0)
    throw plugin::failure(CCBOX_INVALID, "a rule has a flag that this plugin does not know");
  out.git_host = (from.flags & CCBOX_EGRESS_GIT_HOST) != 0;
  out.pattern = from.pattern;
  out.origin = from.origin;
  out.reason = from.reason;
  return out;
}

// Sessions with equal rules, as most have, share one policy: it never changes.
class policy_store {
 public:
  std::shared_ptr<const egress_policy> get(const std::vector<plugin::egress_rule>& rules) {
    std::string key;
    for (const auto& one : rules) {
      key += std::to_string(one.action) + '/' + std::to_string(one.flags);
      for (const auto text : {one.pattern, one.origin, one.reason})
        key.append("/" + std::to_string(text.size()) + ":").append(text);
    }
    const std::lock_guard lock(mutex_);
    const auto known = policies_.find(key);
    if (known != policies_.end())
      if (auto policy = known->second.lock()) return policy;
    std::vector<rule> parsed;
    parsed.reserve(rules.size());
    for (const auto& one : rules)
      parsed.push_back(to_rule(one));
    auto built = egress_policy::build(std::move(parsed));
    std::erase_if(policies_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto* bad = std::get_if<bad_rule>(&built)) refuse(rules[bad->index], *bad);
    auto policy = std::get<std::shared_ptr<const egress_policy>>(built);
    if (const auto dead = policy->dead_entry()) refuse(rules[dead->index], *dead);
    policies_[std::move(key)] = policy;
    return policy;
  }

 private:
  // The caller finds the rule by its origin and pattern.
  [[noreturn]] static void refuse(const plugin::egress_rule& culprit, const bad_rule& bad) {
    throw plugin::failure(
        CCBOX_INVALID, std::string(culprit.origin) + ": '" + std::string(culprit.pattern) + "': " + bad.why);
  }
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const egress_policy>> policies_;
};

class egress_plugin : public plugin::egress {
 public:
  egress_plugin(const plugin::host& host, plugin::options& options)
      : host_(host),
        most_workers_(static_cast<std::size_t>(options.integer("threads", 1, 1, 64))),
        with_token_(options.choice("auth", {"none", "token"}) == "token"),
        resolver_(make_resolver(options.text("resolver", "system"))),
        log_(options.text("decision_log"), common_.count) {
    common_.names = resolver_.get();
    common_.log = &log_;
    common_.emit = [this](const std::string& session, std::string_view type, const std::string& json) {
      if (host_.emit(session, type, json) != CCBOX_OK) host_.log(CCBOX_DEBUG, std::string(type) + " " + json);
    };
  }

  ~egress_plugin() override {
    std::map<std::string, std::shared_ptr<proxy_pair>, std::less<>> open;
    {
      const std::lock_guard lock(mutex_);
      open.swap(pairs_);
    }
    for (auto& [id, pair] : open)
      if (pair) pair->close();
    for (auto& one : workers_)
      one->stop(std::chrono::milliseconds(200));
  }

  void check_rule(const plugin::egress_rule& from) override {
    const auto why = egress_policy::check(to_rule(from));
    if (!why.empty()) throw plugin::failure(CCBOX_INVALID, why);
  }

  void open(const plugin::egress_request& request, plugin::egress_sink& sink) override {
    const std::string id(request.session_id());
    if (id.empty()) throw plugin::failure(CCBOX_INVALID, "a session needs an id");
    auto options = request.settings();
    auto settings = session_settings::read(options);
    options.refuse_unknown();
    auto policy = policies_.get(request.rules());
    auto token = with_token_ ? access_token::random() : access_token();
    std::vector<listener_request> listeners;
    for (const auto& one : request.listeners())
      listeners.push_back({one.kind, one.fd, std::string(one.address)});

    const reservation place(*this, id);
    // A worker that has no thread yet is ours alone: nothing has to be handed over to it, and back.
    std::unique_lock fresh(starting_);
    worker& where = least_used_worker();
    if (where.is_started()) fresh.unlock();
    auto session = std::make_shared<egress_session>(where, common_, id, std::move(policy), settings, token);
    auto pair = std::make_shared<proxy_pair>(where, common_, std::move(session), listeners);
    environment_inputs in;
    in.http = pair->address_of(CCBOX_LISTENER_HTTP);
    in.socks = pair->address_of(CCBOX_LISTENER_SOCKS);
    in.token = token.hex();
    in.net_connect = request.net_connect();
    in.all_proxy = settings.all_proxy;
    for (const auto& one : pair->endpoints())
      sink.endpoint(one.kind, one.address);
    for (const auto& one : session_environment(in))
      sink.environment(one.name, one.value, one.append ? static_cast<std::uint32_t>(CCBOX_EGRESS_APPEND) : 0);
    pair->open();
    where.start();
    const std::lock_guard lock(mutex_);
    pairs_[id] = std::move(pair);
  }

  plugin::egress_answer decide(std::string_view session_id, std::string_view host,
                               std::uint16_t port) override {
    std::shared_ptr<proxy_pair> pair;
    {
      const std::lock_guard lock(mutex_);
      const auto at = pairs_.find(session_id);
      if (at != pairs_.end()) pair = at->second;
    }
    if (!pair) throw plugin::failure(CCBOX_INVALID, "no such session is open");
    const auto policy = pair->policy();
    plugin::egress_answer out;
    const auto parsed_host = parse_host(host, port);
    if (const auto* bad = std::get_if<malformed>(&parsed_host)) {
      out.reason = to_string(denial_reason::malformed);
      out.text = "this is no host: " + std::string(bad->why);
      return out;
    }
    const auto& to = std::get<destination>(parsed_host);
    const auto decided = policy->decide(to);
    out.allowed = decided.allowed;
    if (!decided.allowed) out.reason = to_string(decided.reason);
    if (decided.by) out.rule = decided.by->pattern + " (" + decided.by->origin + ")";
    if (!decided.allowed) out.text = policy->explain(to, decided);
    return out;
  }

  void counters(const plugin::counter_sink& each) override { common_.count.read(each); }

  void close(std::string_view session_id) override {
    std::shared_ptr<proxy_pair> pair;
    {
      const std::lock_guard lock(mutex_);
      const auto at = pairs_.find(session_id);
      if (at == pairs_.end() || !at->second) return;
      pair = std::move(at->second);
      pairs_.erase(at);
    }
    pair->close();
  }

 private:
  // The id is taken from here on; given back if open() does not come to its end.
  class reservation {
   public:
    reservation(egress_plugin& of, const std::string& id) : of_(of), id_(id) {
      const std::lock_guard lock(of_.mutex_);
      if (!of_.pairs_.emplace(id_, nullptr).second)
        throw plugin::failure(CCBOX_INVALID, "session '" + id_ + "' has an egress pair already");
    }
    ~reservation() {
      const std::lock_guard lock(of_.mutex_);
      const auto at = of_.pairs_.find(id_);
      if (at != of_.pairs_.end() && !at->second) of_.pairs_.erase(at);
    }

   private:
    egress_plugin& of_;
    const std::string& id_;
  };

  worker& least_used_worker() {
    const std::lock_guard lock(mutex_);
    for (const auto& one : workers_)
      if (one->sessions == 0) return *one;
    if (workers_.size() < most_workers_) {
      workers_.push_back(std::make_unique<worker>());
      return *workers_.back();
    }
    return **std::min_element(workers_.begin(), workers_.end(),
                              [](const auto& a, const auto& b) { return a->sessions < b->sessions; });
  }

  const plugin::host host_;
  const std::size_t most_workers_;
  const bool with_token_;
  common_parts common_;
  const std::unique_ptr<resolver> resolver_;
  decision_log log_;
  policy_store policies_;
  std::mutex starting_;  // held while a worker without a thread is used; before mutex_
  std::mutex mutex_;
  std::vector<std::unique_ptr<worker>> workers_;
  // Null: being opened.
  std::map<std::string, std::shared_ptr<proxy_pair>, std::less<>> pairs_;
};

}  // namespace

CCBOX_PLUGIN(egress_plugin, "egress", "0.1.0")
