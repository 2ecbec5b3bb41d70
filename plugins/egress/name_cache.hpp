// The names of one session: answers that still hold, questions under way. Positive answers are kept for their
// TTL and 30 s at most, negative ones for 2 s; equal questions are asked once; a session has a few questions
// under way at most, and a question has a limit. localhost and what is below it are this host without asking.
//
// Policy decides before a name gets here, on every connection anew, and judges the addresses after. On one
// worker's thread.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "counters.hpp"
#include "deadline.hpp"
#include "eventual.hpp"
#include "resolver.hpp"
#include "worker.hpp"

namespace ccbox::egress {

class name_cache {
 public:
  static constexpr std::chrono::seconds longest{30}, longest_negative{2};
  static constexpr std::size_t most_entries = 256;

  name_cache(worker& where, resolver& resolver, std::chrono::milliseconds limit, std::size_t most_lookups,
             counters& count);
  ~name_cache();

  using answer = eventual<lookup_result>;
  // A known answer is set at once. Whoever gives up sets `to` itself.
  void find(const std::string& name, answer to);
  // Gives up every question.
  void shut();

 private:
  struct question;
  using clock = std::chrono::steady_clock;
  struct known {
    lookup_result result;
    clock::time_point until;
  };
  void begin(const std::shared_ptr<question>& q);
  void finish(const std::string& name, lookup_result result);
  void remember(const std::string& name, const lookup_result& result);

  worker& worker_;
  resolver& resolver_;
  const std::chrono::milliseconds limit_;
  const std::size_t most_lookups_;
  counters& counters_;
  std::map<std::string, known> known_;
  std::map<std::string, std::shared_ptr<question>> questions_;
  std::deque<std::string> queue_;
  std::size_t under_way_ = 0;
  bool shut_ = false;
};

}  // namespace ccbox::egress
