// What a launch would be, without launching: the policy, the backend's plan for it, and why it would be
// refused.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "plan.hpp"
#include "policy.hpp"
#include "result.hpp"

namespace ccbox {

struct explanation {
  policy rules;
  std::string backend;           // the plugin that would serve it; empty: none
  rule_bits enforced = 0;        // by that backend on this host
  std::optional<error> refusal;  // why the launch would be refused
  std::optional<plan> how;       // of the launch; if it is refused for its rules, of one without those rules
  rule_bits plan_gives_up = 0;   // the rules that `how` leaves out and the launch does not
  std::vector<std::string> env_names;  // of the command; never the values
  std::string proxies;                 // the egress plugin that would serve it; empty: none
  std::vector<std::pair<std::string, std::string>> limits;  // those asked for → who enforces them
};

// Fails where there is no policy to explain: a malformed spec, a mount that is missing.
result<explanation> explain_launch(const sandbox_setup& context, const sandbox_spec& spec);

// `all`: the rules for paths which nothing inside shows, and the destinations, are listed, not counted.
std::string to_text(const explanation& e, bool all);
boost::json::value to_json(const explanation& e);

}  // namespace ccbox
