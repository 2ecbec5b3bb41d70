// The rule bits of the ABI under the names that specs, configs, messages and `--without` use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ccbox/plugin.h"

namespace ccbox {

using rule_bits = std::uint64_t;

// Every bit of this ABI version with its name, in bit order.
struct rule_bit_name {
  rule_bits bit;
  std::string_view name;     // "fs_name_deny"
  std::string_view promise;  // one line for people
  bool waivable;             // may `--without` name it? fs_binds_only and pid_isolation may not be given up
};
const std::vector<rule_bit_name>& all_rule_bits();
rule_bits known_rule_bits();      // all of them in one
rule_bits permanent_rule_bits();  // those that may not be given up

std::optional<rule_bits> rule_bit_from_name(std::string_view name);
std::string_view rule_bit_to_name(rule_bits one_bit);

// "fs_read_deny, fs_name_deny"; unknown bits as "bit 17".
std::string join_rule_bits(rule_bits bits);
std::vector<std::string> rule_bit_names(rule_bits bits);

}  // namespace ccbox
