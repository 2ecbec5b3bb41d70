#include "ccbox/floor.hpp"
#include "fuzz/target.hpp"

namespace {

void run(std::string_view input) {
  const auto orders = ccbox::decode_floor(input);
  if (!orders) return;
  fuzz::require(ccbox::encode(*orders) == input, "the floor's orders have one spelling");
  fuzz::require(4 * (orders->open.size() + orders->guarded.size()) + orders->filter.size() <= input.size(),
                "orders are no more than what came");
}

const fuzz::registered target("floor_orders", run);

}  // namespace
