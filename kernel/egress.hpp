// A loaded plugin that answers "ccbox.egress/1", as C++ values, and the proxy pair of one session that it
// runs.
//
// Never throws what the plugin did wrong: text that is no UTF-8, an endpoint that is no ip:port, a variable
// that is no variable, a pair without an HTTP or a SOCKS endpoint are errors naming the plugin.
//
// Borrows the plugin and its table, which must outlive it and every pair. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ccbox/plugin.h"
#include "egress_rule.hpp"
#include "result.hpp"

namespace ccbox {

// A listening socket that the pair accepts on. The plugin duplicates it; the caller keeps its own.
struct egress_listener {
  ccbox_listener_kind kind = CCBOX_LISTENER_HTTP;
  int fd = -1;
  std::string address;  // ip:port at which the session's commands find it
};

struct egress_request {
  std::string session_id;
  std::span<const egress_rule> rules;  // borrowed
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<egress_listener> listeners;  // none: the plugin listens on 127.0.0.1
  std::string net_connect;                 // path for the session's commands; empty: there is none
};

struct egress_variable {
  std::string name, value;
  bool append = false;  // to a value that is there already, after a space
};

struct egress_decision {
  bool allowed = false;
  std::string reason;  // a word for machines; empty when allowed
  std::string rule;    // the pattern that decided, with its origin
  std::string text;    // for people
};

class egress_pair;

class egress_plugin {
 public:
  egress_plugin(std::string name, ccbox_plugin* plugin, const ccbox_egress* table);

  // The plugin's table is complete. Everything else refuses without it.
  result<void> validate() const;
  const std::string& name() const { return name_; }

  // Would open() take it? The error says where the rule was written, if that is known.
  result<void> check_rule(const egress_rule& rule) const;
  // The pair accepts when this returns; it ends with the handle.
  result<std::unique_ptr<egress_pair>> open(const egress_request& request) const;

  // `ccbox_egress_denied_total`, `reason="port"`, 3: names, labels and values of all sessions.
  void counters(const std::function<void(std::string_view, std::string_view, double)>& each) const;

 private:
  std::string name_;
  ccbox_plugin* plugin_;
  const ccbox_egress* table_;
};

// Owns one session's proxy pair. close() may be called on any thread, also while another function is in
// progress.
class egress_pair {
 public:
  ~egress_pair();  // close()
  egress_pair(const egress_pair&) = delete;
  egress_pair& operator=(const egress_pair&) = delete;

  // ip:port, the first of its kind.
  std::string endpoint(ccbox_listener_kind kind) const;
  const std::vector<egress_variable>& environment() const { return environment_; }

  // What the session's rules say about a destination, as a client would write it. No name is resolved.
  result<egress_decision> decide(std::string_view host, std::uint16_t port) const;

  // Nothing is accepted any more when it returns. Idempotent.
  void close() noexcept;

 private:
  friend class egress_plugin;
  egress_pair(std::string plugin_name, ccbox_plugin* plugin, const ccbox_egress* table,
              std::string session_id);

  std::string name_;
  ccbox_plugin* plugin_;
  const ccbox_egress* table_;
  std::string session_id_;
  std::vector<std::pair<ccbox_listener_kind, std::string>> endpoints_;
  std::vector<egress_variable> environment_;
  std::atomic<bool> open_ = false;
};

}  // namespace ccbox
