#include "egress_session.hpp"

namespace ccbox::egress {
namespace {

constexpr std::chrono::milliseconds log_delay{250};
constexpr std::chrono::seconds explanation_wait{5};

// A tunnel as a member: it keeps its place until it is over.
class member_tunnel : public session_member {
 public:
  explicit member_tunnel(egress_session::place place) : place_(std::move(place)) {}
  void set(std::weak_ptr<tunnel> what) { tunnel_ = std::move(what); }
  void abort() override {
    if (const auto running = tunnel_.lock()) running->abort();
  }

 private:
  egress_session::place place_;
  std::weak_ptr<tunnel> tunnel_;
};

std::string_view origin_of(const rule* by) {
  return by ? std::string_view(by->origin) : std::string_view();
}

std::string_view pattern_of(const rule* by) {
  return by ? std::string_view(by->pattern) : std::string_view();
}

}  // namespace

egress_session::egress_session(worker& where, common_parts& common, std::string id,
                               std::shared_ptr<const egress_policy> policy, session_settings settings,
                               access_token token)
    : worker_(where),
      common_(common),
      id_(std::move(id)),
      policy_(std::move(policy)),
      settings_(std::move(settings)),
      token_(std::move(token)),
      names_(where, *common.names, settings_.resolve_timeout, settings_.most_lookups, common.count),
      origins_(where.deadlines(), settings_.max_idle_origins, settings_.origin_keep_alive),
      denials_(where.deadlines(), settings_.denial_window,
               [this](const std::string& json) {
                 if (common_.emit) common_.emit(id_, "denial", json);
               }),
      unreached_(where.deadlines(), settings_.denial_window,
                 [this](const std::string& json) {
                   if (common_.emit) common_.emit(id_, "unreachable", json);
                 }),
      log_flush_(where.deadlines(), [this] { common_.log->flush(); }) {
  if (settings_.upstream)
    dialler_ = std::make_unique<upstream_dialler>(worker_, *policy_, common_.listeners, names_, settings_);
  else
    dialler_ = std::make_unique<direct_dialler>(worker_, *policy_, common_.listeners, names_, settings_);
  ++common_.count.sessions;
  ++worker_.sessions;
}

egress_session::~egress_session() {
  --common_.count.sessions;
  --worker_.sessions;
}

decision egress_session::admit(std::string_view protocol, const destination& to) {
  const auto decided = policy_->decide(to);
  if (decided.allowed)
    ++common_.count.allowed;
  else
    denied(protocol, host_text(to), to.port, decided);
  return decided;
}

void egress_session::denied(std::string_view protocol, std::string_view host, std::uint16_t port,
                            const decision& why) {
  if (asks_again(protocol, host, port)) return;
  common_.count.denied(why.reason);
  const auto reason = to_string(why.reason);
  log(protocol, host, port, "deny", reason, why.by);
  denials_.add({std::string(protocol), std::string(host), port, std::string(reason),
                std::string(pattern_of(why.by)), std::string(origin_of(why.by))});
}

bool egress_session::asks_again(std::string_view protocol, std::string_view host, std::uint16_t port) {
  const auto now = std::chrono::steady_clock::now();
  if (protocol.starts_with("socks")) {
    unexplained_ = {std::string(host), port, now};
    return false;
  }
  if (protocol != "connect" || unexplained_.port != port || unexplained_.host != host) return false;
  unexplained_.port = 0;
  return now - unexplained_.when < explanation_wait;
}

void egress_session::not_reached(std::string_view protocol, const destination& to, const decision& by,
                                 const dial_failure& f) {
  if (f.what == dial_failure::kind::refused_by_policy) {
    auto why = f.by;
    if (!why.by) why.by = by.by;
    return denied(protocol, host_text(to), to.port, why);
  }
  common_.count.dial_failed(f.word());
  log(protocol, host_text(to), to.port, "failed", f.word(), by.by);
  unreached_.add({std::string(protocol), host_text(to), to.port, std::string(f.word()),
                  std::string(pattern_of(by.by)), std::string(origin_of(by.by))});
}

void egress_session::done(std::string_view protocol, const destination& to, const decision& by,
                          const tunnel_end& end) {
  common_.count.bytes_up += end.bytes_up;
  common_.count.bytes_down += end.bytes_down;
  log(protocol, host_text(to), to.port, "allow", {}, by.by, end);
}

void egress_session::log(std::string_view protocol, std::string_view host, std::uint16_t port,
                         std::string_view outcome, std::string_view reason, const rule* by,
                         const tunnel_end& end) {
  if (!*common_.log) return;
  common_.log->add({id_, protocol, host, port, outcome, reason, pattern_of(by), origin_of(by), end.bytes_up,
                    end.bytes_down, end.took});
  if (closed_)
    common_.log->flush();
  else
    log_flush_.after(log_delay);
}

void egress_session::start_tunnel(place kept, std::string protocol, destination to, decision by,
                                  tunnel::side client, tunnel::side origin) {
  const auto self = shared_from_this();
  const auto member = std::make_shared<member_tunnel>(std::move(kept));
  tunnel::callbacks then;
  then.sni_noted = [this, by](const sni_check& check) { sni_noted(by, check); };
  ++common_.count.tunnels;
  then.ended = [self, member, protocol = std::move(protocol), to, by](const tunnel_end& end) {
    --self->common_.count.tunnels;
    if (!end.refused) self->done(protocol, to, by, end);
  };
  const auto made = std::make_shared<tunnel>(
      worker_, std::move(client), std::move(origin),
      tunnel_limits{settings_.idle_timeout, settings_.half_closed_timeout, settings_.life_limit},
      sni_check(std::move(to), settings_.sni), std::move(then));
  member->set(made);
  join(*member);
  made->start();
}

void egress_session::sni_noted(const decision& by, const sni_check& check) {
  const auto host = host_text(check.to());
  if (settings_.sni == sni_mode::enforce && check.note() != "sni-missing")
    return denied("sni", host, check.to().port, {false, denial_reason::sni_mismatch, by.by});
  ++common_.count.sni_notes;
  log("sni", host, check.to().port, "allow", check.note(), by.by);
}

egress_session::place::place(std::shared_ptr<egress_session> of) : session_(std::move(of)) {
  ++session_->pending_;
}

egress_session::place::~place() {
  if (!session_) return;
  --(promoted_ ? session_->promoted_ : session_->pending_);
  if (session_->there_is_room_ && session_->has_room()) session_->there_is_room_();
}

bool egress_session::place::promote() {
  if (promoted_) return true;
  if (session_->promoted_ >= session_->settings_.max_tunnels) return false;
  ++session_->promoted_;
  --session_->pending_;
  promoted_ = true;
  if (session_->there_is_room_ && session_->has_room()) session_->there_is_room_();
  return true;
}

void egress_session::close() {
  if (std::exchange(closed_, true)) return;
  const auto self = shared_from_this();
  there_is_room_ = nullptr;
  names_.shut();
  origins_.clear();
  // One that is aborted leaves the list when it is destroyed, which may be at once or in a moment.
  for (auto at = members_.begin(); at != members_.end();)
    (at++)->abort();
  denials_.flush();
  unreached_.flush();
  common_.log->flush();
}

}  // namespace ccbox::egress
