// An enclosure started straight from a plan, without the kernel's runtime: tests/support/attacker runs in
// place of ccbox-init and tries what it is told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "process.hpp"
#include "support/planned.hpp"
#include "unique_fd.hpp"

namespace ccbox::test {

// Mounts that every program needs (/usr and the links of the root), for the caller's ids, with `rules` on
// top.
planned_request request_for_this_caller(std::vector<planned_rule> rules);

class attacked_enclosure {
 public:
  // Plans and starts. Throws std::runtime_error with what the plugin or bwrap says. `before_start` runs when
  // every path of the plan is open and nothing is started yet.
  explicit attacked_enclosure(const planned_request& request, const std::function<void()>& before_start = {});
  ~attacked_enclosure();

  struct reply {
    int error = 0;
    std::string data;
  };
  // Throws if the attacker is gone.
  reply ask(const std::vector<std::string>& words) const;
  int attempt(const std::vector<std::string>& words) const { return ask(words).error; }

  const plan& planned() const { return plan_; }
  pid_t launcher() const { return child_->pid(); }
  void kill();  // SIGKILL to the launcher; returns when it is reaped and the channel has closed

 private:
  plan plan_;
  unique_fd channel_;
  std::unique_ptr<child> child_;
};

// Starts the launcher and does not wait for it to get anywhere.
child start_launcher(const plan& p, int channel, int error_fd);

// Everything below a directory: path → type, mode, owner, size, times, content. The directory's own listing
// too.
std::map<std::string, std::string> host_listing(const std::string& root);

}  // namespace ccbox::test
