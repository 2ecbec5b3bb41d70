#include "plugins/bubblewrap/broker_orders.hpp"

#include "fuzz/target.hpp"
#include "plugins/bubblewrap/broker/name_rules.hpp"

namespace {

using namespace ccbox::bubblewrap;

void run(std::string_view input) {
  const auto orders = decode_broker_orders(input);
  if (!orders) return;
  fuzz::require(encode(*orders) == input, "orders have one spelling");
  std::size_t bytes = 0;
  for (const auto& anchor : orders->anchors)
    bytes += anchor.guest.size() + anchor.deny.size() + anchor.exempt.size();
  fuzz::require(bytes <= input.size(), "orders are no more than what came");

  std::string problem;
  const auto rules = name_rules::make(*orders, problem);
  fuzz::require(rules.has_value() == problem.empty(), "rules that cannot be made have a reason");
  if (!rules) return;
  for (const char* directory : {"/", "/w", "/w/.git/hooks"}) {
    const auto& state = rules->at(directory);
    for (const char* name : {".env", "x.key", "\xff\n"}) {
      const bool forbidden = rules->forbids(state, name) != nullptr;
      fuzz::require(!forbidden || rules->leads_to(state, name) != nullptr,
                    "what is forbidden is on a rule's way");
      fuzz::require(rules->into(state, name).size() == state.size(), "a step goes on with every anchor");
    }
  }
}

const fuzz::registered target("broker_orders", run);

}  // namespace
