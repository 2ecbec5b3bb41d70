// What is said of kernels that this one is not; what this one can be made to look like is in
// integration/name_support_test.cpp.
#include "plugins/bubblewrap/name_support.hpp"

#include <doctest/doctest.h>

#include <cerrno>

using namespace ccbox::bubblewrap;

namespace {

name_signs present() {
  name_signs signs;
  signs.landlock_version = 3;
  return signs;
}

std::string cause_of(const name_signs& signs) {
  const auto found = diagnose_name_signs(signs);
  return found ? found->cause : "";
}

diagnosis after(const std::string& stderr_text, const host_signs& signs = {}) {
  trial_outcome outcome;
  outcome.code = 1;
  outcome.stderr_text = stderr_text;
  auto found = diagnose_name_trial(outcome, signs);
  CHECK_MESSAGE(!found.hint.empty(), stderr_text);
  CHECK_MESSAGE(found.hint.find('\n') == std::string::npos, found.hint);
  return found;
}

bool names(const diagnosis& d, const char* remedy) {
  INFO(d.hint);
  return d.hint.find(remedy) != std::string::npos;
}

}  // namespace

TEST_CASE("Landlock 3 and a listener that signals leave alone are enough, and nothing less is") {
  CHECK(cause_of(present()) == "");
  auto signs = present();
  signs.landlock_version = 2;
  CHECK(cause_of(signs) == "landlock-too-old");
  signs.landlock_version = 7;
  CHECK(cause_of(signs) == "");
  signs.landlock_version = -1;
  for (const auto& [error, cause] :
       {std::pair{ENOSYS, "no-landlock"}, {EOPNOTSUPP, "landlock-off"}, {EPERM, "filter-around"}}) {
    signs.landlock_error = error;
    CHECK(cause_of(signs) == cause);
  }
  signs = present();
  signs.listener_error = EINVAL;
  CHECK(cause_of(signs) == "listener-too-old");
  signs.listeners = false;
  CHECK(cause_of(signs) == "no-listener");
  signs.listener_error = EPERM;
  CHECK(cause_of(signs) == "filter-around");
  signs.listener_error = 0;  // a filter around that answers for the kernel
  CHECK(cause_of(signs) == "filter-around");
}

TEST_CASE("memory that nobody may read is told from memory that the broker may not read") {
  const auto line = "ccbox-init: the trial: an ordinary name: Bad address\n";
  host_signs yama;
  yama.ptrace_scope = 3;
  CHECK(after(line, yama).cause == "memory-unreadable");
  CHECK(names(after(line, yama), "kernel.yama.ptrace_scope at 2 or less"));
  yama.ptrace_scope = 1;
  CHECK(after(line, yama).cause == "memory-unreadable");
  CHECK(names(after(line, yama), "process_vm_readv"));
}

TEST_CASE("the broker's line is the reason, whatever init makes of its end") {
  const auto found = after(
      "ccbox-broker: enter the enclosure's user namespace: Operation not permitted\n"
      "ccbox-init: the broker ended before it was ready\n");
  CHECK(found.cause == "setns-refused");
  CHECK(names(found, "Operation not permitted"));
  host_signs container;
  container.container = true;
  CHECK(names(
      after("ccbox-broker: enter the enclosure's mount namespace: Operation not permitted\n", container),
      "--security-opt"));
  CHECK(after("ccbox-broker: start a thread: Resource temporarily unavailable\n").cause == "broker-failed");
}

TEST_CASE("a floor with a hole, and a broker that lets a name through, are told apart") {
  CHECK(
      after("ccbox-init: the floor does not hold: a file could be created in a guarded directory\n").cause ==
      "floor-leaks");
  CHECK(after("ccbox-init: the trial: a forbidden name could be made\n").cause == "names-leak");
}

TEST_CASE("a trial without a known reason is told with what it wrote") {
  CHECK(names(after("ccbox-init: the trial: a forbidden name: No such \x1b[31mfile\n"),
              "No such \\x1b[31mfile"));
  CHECK(after("").cause == "broker-failed");
  trial_outcome outcome;
  CHECK(diagnose_name_trial(outcome, {}).cause == "broker-silent");
  outcome.timed_out = true;
  CHECK(diagnose_name_trial(outcome, {}).cause == "broker-timed-out");
}
