// Why bubblewrap does not work on this host, from what it wrote and from what the host shows: a word for
// machines and a remedy for people. Pure; tested on recorded lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ccbox::bubblewrap {

// What can be read without starting anything. Absent: the kernel has no such switch.
struct host_signs {
  bool root = false;
  bool enclosure = false;  // of ccbox
  bool container = false;  // Docker, Podman or their kin
  std::string kernel_release;
  std::optional<long> max_user_namespaces;
  std::optional<long> unprivileged_userns_clone;              // Debian, Arch
  std::optional<long> apparmor_restrict_unprivileged_userns;  // Ubuntu 23.10 and later
  bool apparmor_profile = false;                              // one for bwrap is installed
  std::optional<long> ptrace_scope;                           // Yama
};
host_signs read_host_signs();

struct trial_outcome {
  bool succeeded = false;
  bool timed_out = false;
  int code = 0;  // exit status, or 128 + signal
  std::string stderr_text;
  bool refusal_reported = false;  // of a trial with a name rule: the broker told of what it refused
};

struct diagnosis {
  std::string cause;  // "no-user-namespaces"
  std::string hint;   // one line
};

// From the signs alone: what is certain to fail. Nothing: it may work.
std::optional<diagnosis> diagnose_signs(const host_signs& signs);

// Of a trial that did not succeed.
diagnosis diagnose_trial(const trial_outcome& outcome, const host_signs& signs);

}  // namespace ccbox::bubblewrap
