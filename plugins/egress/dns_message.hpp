// The few DNS messages that a stub resolver speaks: one question for A or AAAA, and its answer (RFC 1035,
// with the EDNS0 size of RFC 6891). Pure; bytes of the server are hostile: lengths are checked, compression
// pointers only go backwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "resolver.hpp"

namespace ccbox::egress {

enum class dns_type : std::uint16_t { a = 1, aaaa = 28 };

// `name` is a destination's: canonical, so its labels fit.
std::string write_dns_question(std::uint16_t id, std::string_view name, dns_type type);

struct dns_answer {
  enum class status {
    not_ours,   // another id or question, or no well-formed message: wait on
    truncated,  // ask again over TCP
    answered,   // `result` is found, no_such_name or failed; found without addresses: none of this type
  };
  status what = status::not_ours;
  lookup_result result;
};
// Follows CNAMEs within the answer; records of other names do not count.
dns_answer read_dns_answer(std::string_view message, std::uint16_t id, std::string_view name, dns_type type);

}  // namespace ccbox::egress
