#include "plugins/egress/dns_message.hpp"

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::egress;

// The bytes are an answer to question 0x0007 for a.test.
void run(std::string_view input) {
  for (const auto type : {dns_type::a, dns_type::aaaa}) {
    const auto answer = read_dns_answer(input, 7, "a.test", type);
    const auto& result = answer.result;
    fuzz::require(answer.what == dns_answer::status::answered || result.addresses.empty(),
                  "only an answer has addresses");
    fuzz::require(result.addresses.empty() || result.what == lookup_result::status::found,
                  "addresses are found, or there are none");
    fuzz::require(result.ttl.count() <= 86'400, "no answer holds for more than a day");
    for (const auto& address : result.addresses)
      fuzz::require(type == dns_type::aaaa || address.is_v4(), "a question for A finds IPv4");
    if (answer.what == dns_answer::status::answered) {
      fuzz::require(read_dns_answer(input, 8, "a.test", type).what == dns_answer::status::not_ours,
                    "an answer to another question is not ours");
      fuzz::require(read_dns_answer(input, 7, "b.test", type).what == dns_answer::status::not_ours,
                    "an answer for another name is not ours");
    }
  }
}

const fuzz::registered target("dns_message", run);

}  // namespace
