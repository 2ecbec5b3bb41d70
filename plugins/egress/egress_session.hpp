// What the connections of one session share: its rules and limits, its way out, its books. Each connection
// and tunnel is a member of it, so that closing the session ends them all.
//
// Shared by its members; on one worker's thread but for what is const.
#pragma once

#include <boost/intrusive/list.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "access_token.hpp"
#include "counters.hpp"
#include "decision_log.hpp"
#include "denial_report.hpp"
#include "dialler.hpp"
#include "egress_policy.hpp"
#include "name_cache.hpp"
#include "origin_pool.hpp"
#include "own_listeners.hpp"
#include "session_settings.hpp"
#include "tunnel.hpp"
#include "worker.hpp"

namespace ccbox::egress {

// What the sessions of a plugin share; outlives them.
struct common_parts {
  resolver* names = nullptr;
  own_listeners listeners;
  counters count;
  decision_log* log = nullptr;
  // Events "denial" and "unreachable" of docs/abi.md.
  std::function<void(const std::string& session, std::string_view type, const std::string& json)> emit;
};

// One that ends with its session.
class session_member
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual ~session_member() = default;
  virtual void abort() = 0;
};

class egress_session : public std::enable_shared_from_this<egress_session> {
 public:
  egress_session(worker& where, common_parts& common, std::string id,
                 std::shared_ptr<const egress_policy> policy, session_settings settings, access_token token);
  ~egress_session();

  worker& io() { return worker_; }
  const std::string& id() const { return id_; }
  const egress_policy& policy() const { return *policy_; }
  std::shared_ptr<const egress_policy> share_policy() const { return policy_; }
  const session_settings& settings() const { return settings_; }
  const access_token& token() const { return token_; }
  dialler& way_out() { return *dialler_; }
  origin_pool& origins() { return origins_; }
  counters& count() { return common_.count; }

  // The decision of the rules; a refusal is recorded and reported.
  decision admit(std::string_view protocol, const destination& to);
  // A refusal for another reason. `host` may be any bytes. A client that SOCKS refused and that asks the HTTP
  // proxy within moments for the explanation, which SOCKS cannot carry, was refused once.
  void denied(std::string_view protocol, std::string_view host, std::uint16_t port, const decision& why);
  // What an allowed destination came to.
  void not_reached(std::string_view protocol, const destination& to, const decision& by,
                   const dial_failure& f);
  void done(std::string_view protocol, const destination& to, const decision& by, const tunnel_end& end);

  // A place among the connections. Pending at first.
  class place {
   public:
    explicit place(std::shared_ptr<egress_session> of);
    place(place&&) = default;
    ~place();
    // To those past their first request; false: max_tunnels are there.
    bool promote();

   private:
    std::shared_ptr<egress_session> session_;
    bool promoted_ = false;
  };
  // Both ends are connected, and the client knows. Recorded by done() when it is over.
  void start_tunnel(place kept, std::string protocol, destination to, decision by, tunnel::side client,
                    tunnel::side origin);

  bool has_room() const { return !closed_ && pending_ < settings_.max_pending; }
  // So many connections that each must do with little memory of the host.
  bool is_crowded() const { return promoted_ > settings_.roomy_connections; }
  void on_room(std::function<void()> there_is) { there_is_room_ = std::move(there_is); }

  void join(session_member& one) { members_.push_back(one); }
  // Ends every member, gives up lookups, reports what was counted. Idempotent.
  void close();
  bool closed() const { return closed_; }

 private:
  bool asks_again(std::string_view protocol, std::string_view host, std::uint16_t port);
  void sni_noted(const decision& by, const sni_check& check);
  void log(std::string_view protocol, std::string_view host, std::uint16_t port, std::string_view outcome,
           std::string_view reason, const rule* by, const tunnel_end& end = {});

  worker& worker_;
  common_parts& common_;
  const std::string id_;
  const std::shared_ptr<const egress_policy> policy_;
  const session_settings settings_;
  const access_token token_;
  name_cache names_;
  std::unique_ptr<dialler> dialler_;
  origin_pool origins_;
  denial_report denials_, unreached_;
  deadline log_flush_;
  boost::intrusive::list<session_member, boost::intrusive::constant_time_size<false>> members_;
  std::size_t pending_ = 0, promoted_ = 0;
  std::function<void()> there_is_room_;
  bool closed_ = false;
  // The last refusal by SOCKS that nobody has asked about.
  struct {
    std::string host;
    std::uint16_t port = 0;
    std::chrono::steady_clock::time_point when;
  } unexplained_;
};

}  // namespace ccbox::egress
