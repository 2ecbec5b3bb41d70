// Each check of the contract suite fails for a plugin that breaks its promise, and says what the plugin did.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "contract/contract_run.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

const std::string broken_directory = CCBOX_TEST_BINARY_DIR "/broken_plugins/";

struct broken_promise {
  std::string defect;
  std::string check;
  std::string says;  // part of the reason
};

// Chosen by the option `defect`.
const std::vector<broken_promise>& defects() {
  static const std::vector<broken_promise> all = {
      {"create_is_slow", "create_and_destroy_are_quick", "create took longer than 1 s"},
      {"destroy_is_slow", "create_and_destroy_are_quick", "destroy took longer than 1 s"},
      {"create_crashes", "create_and_destroy_are_quick", "it crashed with SIGSEGV"},
      {"create_fails", "create_and_destroy_are_quick", "create returned CCBOX_FAILED: no luck"},
      {"leaks_a_descriptor", "create_and_destroy_leak_nothing", "left 100 more open descriptors"},
      {"leaks_a_thread", "create_and_destroy_leak_nothing", "left 100 more threads"},
      {"leaks_a_child", "create_and_destroy_leak_nothing", "left 100 more child processes"},
      {"leaks_heap", "create_and_destroy_leak_nothing", "bytes of heap"},
      {"leaks_a_mapping", "create_and_destroy_leak_nothing", "mapped bytes"},
      {"no_extension", "answers_a_known_extension", "none of the extensions"},
      {"extension_moves", "answers_a_known_extension", "another table the second time"},
      {"answers_every_name", "unknown_extension_is_null", "get_extension answers"},
      {"compares_a_prefix", "unknown_extension_is_null", "get_extension answers 'ccbox.backend/10'"},
      {"compares_terminated_names", "extension_name_needs_no_terminator",
       "it crashed with SIGSEGV (what the host"},
      {"kind_is_unknown", "backend_table_is_sane", "the kind 'docker' is none of"},
      {"plan_is_missing", "backend_table_is_sane", "probe or plan is null"},
      {"table_is_short", "backend_table_is_sane", "size of the backend table"},
      {"probe_fails", "probe_answers_what_it_means", "the quick probe returned CCBOX_FAILED: no luck"},
      {"probe_has_no_note", "probe_answers_what_it_means", "has no note"},
      {"probe_claims_unknown_bits", "probe_answers_what_it_means", "claims bit 50"},
      {"probe_claims_a_kernel", "probe_answers_what_it_means", "kernel_boundary"},
      {"probe_available_is_two", "probe_answers_what_it_means", "other than 0 or 1"},
      {"unavailable_without_hint", "probe_answers_what_it_means", "without a hint"},
      {"unavailable_with_claims", "probe_answers_what_it_means", "claims rules although"},
      {"probe_alternates", "probe_twice_answers_the_same", "differently the second time"},
      {"quick_probe_is_slow", "probe_is_quick", "longer than 50 ms"},
      {"probe_leaks_a_descriptor", "probe_leaves_nothing", "left 103 more open descriptors"},
      {"probe_leaks_a_child", "probe_leaves_nothing", "left 103 more child processes"},
      {"quick_probe_starts_a_process", "quick_probe_starts_nothing", "it made the system call clone"},
      {"probe_overflows", "probe_texts_fit_their_buffers", "wrote beyond the capacity"},
      {"probe_ignores_sizes", "probe_keeps_to_declared_sizes", "it crashed with SIGSEGV"},
      {"probe_clears_the_result", "probe_keeps_to_declared_sizes", "members that it cannot know"},
      {"plan_refuses", "ordinary_request_is_planned", "is refused: CCBOX_FAILED 'no plan for this'"},
      {"returns_an_unknown_status", "ordinary_request_is_planned", "status 77, which is no ccbox_status"},
      {"argv_is_empty", "ordinary_request_is_planned", "the host refuses the plan: its argv is empty"},
      {"argv_is_relative", "ordinary_request_is_planned", "argv[0] is not an absolute path: 'env'"},
      {"argv_ends_elsewhere", "ordinary_request_is_planned", "does not end in running ccbox-init"},
      {"channel_is_fixed", "ordinary_request_is_planned", "with `--channel 17`"},
      {"keeps_a_borrowed_string", "ordinary_request_is_planned", "it crashed with SIGSEGV (what the host"},
      {"argument_has_a_nul", "ordinary_request_is_planned", "argument 1 contains a NUL byte"},
      {"environment_is_malformed", "ordinary_request_is_planned", "a variable is called 'A=B'"},
      {"open_path_is_relative", "ordinary_request_is_planned", "a path to open is not absolute"},
      {"layer_of_no_rule", "ordinary_request_is_planned", "a layer for rule 7 of 7"},
      {"enforces_twice", "ordinary_request_is_planned", "says twice what it enforces"},
      {"flags_are_unknown", "ordinary_request_is_planned", "sets the plan flags 0x1000"},
      {"plan_claims_unknown_bits", "ordinary_request_is_planned", "claims bit 50"},
      {"unconfined_with_a_boundary", "ordinary_request_is_planned", "no boundary and claims pid_isolation"},
      {"unconfined_and_native", "ordinary_request_is_planned", "is for kind none, and this is kind native"},
      {"none_with_claims", "probe_answers_what_it_means", "kind none claims pid_isolation"},
      {"probe_text_is_no_utf8", "probe_answers_what_it_means", "a text that is no UTF-8"},
      {"plan_aborts", "ordinary_request_is_planned", "SIGABRT; its last line was 'assertion failed: luck'"},
      {"plan_exits", "ordinary_request_is_planned", "ended the process with exit code 3"},
      {"plan_claims_less", "plan_enforces_what_probe_claims", "the plan does not enforce it"},
      {"plan_claims_more", "plan_enforces_what_probe_claims",
       "the plan claims exec_deny, the probe does not"},
      {"probe_claims_more", "plan_enforces_what_probe_claims", "the probe claims exec_deny"},
      {"echoes_required", "unenforceable_bits_are_not_claimed", "back because it was required"},
      {"skips_unknown_rules", "unknown_rules_are_not_claimed", "still claims fs_read_deny"},
      {"waived_rules_are_refused", "waived_bits_are_given_up_one_by_one", "is refused: CCBOX_INVALID"},
      {"waiving_costs_all", "waived_bits_are_given_up_one_by_one", "the plan loses resource_limits too"},
      {"ignores_the_network", "waived_bits_are_given_up_one_by_one",
       "claims net_proxy_only on the host's network"},
      {"crashes_without_rules", "empty_request_does_no_harm", "it crashed with SIGSEGV"},
      {"plan_counts", "same_request_gives_the_same_plan", "gives another plan"},
      {"plan_knows_its_thread", "threads_plan_at_once", "differ from one made alone"},
      {"plan_starts_a_process", "plan_starts_and_writes_nothing", "left 1 more child processes"},
      {"plan_executes", "plan_starts_and_writes_nothing", "ended the process"},
      {"plan_creates_a_file", "plan_starts_and_writes_nothing", "it made the system call openat"},
      {"plan_opens_for_writing", "plan_starts_and_writes_nothing", "it made the system call openat"},
      {"plan_removes", "plan_starts_and_writes_nothing", "it made the system call unlink"},
      {"plan_makes_a_directory", "plan_starts_and_writes_nothing", "it made the system call mkdirat"},
      {"plan_leaks_a_descriptor", "plan_leaks_nothing", "left 100 more open descriptors"},
      {"plan_leaks_heap", "plan_leaks_nothing", "bytes of heap"},
      {"plan_is_slow", "plan_is_quick", "of CPU; the limit is 50 ms"},
      {"many_rules_fail", "ten_thousand_mounts_do_no_harm", "neither planned nor CCBOX_TOO_LARGE"},
      {"drops_late_mounts", "ten_thousand_mounts_do_no_harm", "the last of 10,000 mounts is not in it"},
      {"passes_a_nul_on", "path_bytes_arrive_unchanged_or_are_refused", "a NUL byte in a mount is passed on"},
      {"cuts_paths_at_a_nul", "path_bytes_arrive_unchanged_or_are_refused",
       "a NUL byte in a mount is changed"},
      {"replaces_newlines", "path_bytes_arrive_unchanged_or_are_refused", "a newline in a mount is changed"},
      {"drops_all_mounts", "path_bytes_arrive_unchanged_or_are_refused", "leaves the mount out"},
      {"refuses_newer_hosts", "newer_host_gets_the_same_plan", "a larger request changes the plan"},
      {"steps_rules_by_sizeof", "newer_host_gets_the_same_plan", "step by rule_stride"},
      {"plan_ignores_the_request_size", "truncated_request_is_read_within_its_size",
       "it crashed with SIGSEGV"},
      {"plans_a_truncated_request", "truncated_request_is_read_within_its_size", "has no control channel"},
      {"plan_ignores_the_sink_size", "truncated_sink_is_called_within_its_size", "it crashed with SIGSEGV"},
      {"plan_error_beyond_capacity", "plan_error_fits_its_buffer", "wrote beyond the capacity"},
      {"plan_error_is_empty", "plan_error_fits_its_buffer", "without an error text"},
  };
  return all;
}

const std::vector<broken_promise>& monitor_defects() {
  static const std::vector<broken_promise> all = {
      {"monitor_has_a_hole", "monitor_table_is_sane", "a function of the monitor table is null"},
      {"keeps_the_session_id", "monitor_keeps_nothing_borrowed", "it crashed with SIGSEGV"},
      {"counts_twice", "monitor_invents_nothing", "10000 denials became 20000"},
      {"counts_nothing", "monitor_invents_nothing", "stands for none"},
      {"names_no_action", "monitor_keeps_nothing_borrowed", "without an action"},
      {"expects_text", "monitor_takes_any_bytes", "it crashed with SIGABRT"},
      {"close_frees_nothing", "monitor_leaks_nothing", "bytes of heap"},
      {"steps_rules_by_sizeof", "monitor_reads_newer_hosts", "it crashed with SIG"},
      {"reads_output_slowly", "monitor_is_quick", "64 KiB of output took longer than 5 ms"},
  };
  return all;
}

// Chosen by the environment, since the suite passes options of its own to a create that must refuse.
const std::vector<broken_promise>& early_defects() {
  static const std::vector<broken_promise> all = {
      {"leaks_when_refused", "refused_create_leaks_nothing", "bytes of heap"},
      {"accepts_unknown_options", "unknown_option_is_refused", "returned CCBOX_OK, not CCBOX_INVALID"},
      {"error_names_nothing", "unknown_option_is_refused", "does not name the option: 'bad configuration'"},
      {"instance_when_refused", "unknown_option_is_refused", "create failed and still returned an instance"},
      {"no_error_text", "unknown_option_is_refused", "without an error text"},
      {"error_of_two_lines", "unknown_option_is_refused", "control characters"},
      {"accepts_unknown_options", "bad_option_bytes_do_no_harm", "not CCBOX_INVALID"},
      {"steps_options_by_sizeof", "options_are_stepped_by_their_stride", "it crashed with SIGSEGV"},
      {"error_beyond_capacity", "create_error_fits_its_buffer", "wrote beyond the capacity"},
      {"error_claims_too_much", "create_error_fits_its_buffer", "bytes of text in a buffer of 0"},
  };
  return all;
}

// Chosen when the plugin was built: what goes wrong before create.
const std::vector<broken_promise>& built_in_defects() {
  static const std::vector<broken_promise> all = {
      {"broken_second_symbol", "exports_one_symbol", "it exports 1 more, 'one_symbol_too_many' among them"},
      {"broken_no_entry", "exports_one_symbol", "it does not export ccbox_plugin_v1"},
      {"broken_name", "descriptor_is_sane", "the name 'Broken!' is not"},
      {"broken_fresh_descriptor", "descriptor_is_sane", "it must be static"},
      {"broken_null_descriptor", "descriptor_is_sane", "returns NULL"},
      {"broken_short_descriptor", "descriptor_is_sane", "the size of the descriptor, 56"},
      {"broken_crash_at_load", "descriptor_is_sane", "it crashed with SIGABRT"},
      {"broken_thread_at_load", "starts_no_thread_before_create", "started a thread"},
  };
  return all;
}

void expect_broken(const std::string& plugin, const test::plugin_options& options,
                   const broken_promise& promise) {
  CAPTURE(promise.defect);
  contract_options how;
  how.options = options;
  how.only = {promise.check};
  const auto report = run_plugin_contract(plugin, how);
  REQUIRE(report.has_value());
  CHECK_FALSE(report->passed());
  const auto& last = report->checks.back();
  CHECK(last.name == promise.check);
  CHECK(last.state == contract_check::outcome::failed);
  CHECK_MESSAGE(last.reason.find(promise.says) != std::string::npos, last.reason);
}

contract_report run_only(const std::string& plugin, const test::plugin_options& options,
                         const std::string& check) {
  contract_options how;
  how.options = options;
  how.only = {check};
  const auto report = run_plugin_contract(plugin, how);
  REQUIRE(report.has_value());
  return *report;
}

}  // namespace

TEST_CASE("the plugin that breaks promises keeps them all until it is asked to") {
  CHECK(test::broken_promises(broken_directory + "broken.so") == "");
}

TEST_CASE("each broken promise fails its check with what the plugin did") {
  for (const auto& promise : defects())
    expect_broken(broken_directory + "broken.so", {{"defect", promise.defect}}, promise);
}

TEST_CASE("a create that refuses the given options ends the suite, with its words") {
  contract_options how;
  how.options = {{"defect", "create_fails"}};
  const auto report = run_plugin_contract(broken_directory + "broken.so", how);
  REQUIRE(report.has_value());
  CHECK_FALSE(report->passed());
  std::size_t failed = 0;
  for (const auto& check : report->checks)
    failed += check.state == contract_check::outcome::failed;
  CHECK(failed == 1);
  CHECK(report->checks.back().reason ==
        "create returned CCBOX_FAILED: no luck; the checks that follow need an instance and were left out");
}

TEST_CASE("the monitor that breaks promises keeps them all until it is asked to") {
  CHECK(test::broken_promises(broken_directory + "broken_monitor.so") == "");
}

TEST_CASE("each broken promise of a monitor fails its check") {
  for (const auto& promise : monitor_defects())
    expect_broken(broken_directory + "broken_monitor.so", {{"defect", promise.defect}}, promise);
}

TEST_CASE("each broken promise of a refused create fails its check") {
  for (const auto& promise : early_defects()) {
    ::setenv("CCBOX_TEST_DEFECT", promise.defect.c_str(), 1);
    expect_broken(broken_directory + "broken.so", {{"defect", "none"}}, promise);
    ::unsetenv("CCBOX_TEST_DEFECT");
  }
}

TEST_CASE("what goes wrong before create fails its check") {
  for (const auto& promise : built_in_defects())
    expect_broken(broken_directory + promise.defect + ".so", {}, promise);
}

TEST_CASE("every check of the suite is shown to fail by some broken plugin") {
  std::set<std::string> shown;
  for (const auto* list : {&defects(), &early_defects(), &built_in_defects(), &monitor_defects()})
    for (const auto& promise : *list)
      shown.insert(promise.check);
  for (const auto& [name, text] : contract_checks())
    CHECK_MESSAGE(shown.count(name) == 1, name);
}

TEST_CASE("a plugin that hangs is a failed check after the limit, and nothing of it is left") {
  contract_options how;
  how.options = {{"defect", "plan_hangs"}};
  how.only = {"ordinary_request_is_planned"};
  how.check_limit = std::chrono::milliseconds(300);
  const auto report = run_plugin_contract(broken_directory + "broken.so", how);
  REQUIRE(report.has_value());
  CHECK(report->checks.back().reason == "it did not answer within 300 ms");
  std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  long pid = 0;
  children >> pid;
  CHECK(pid == 0);
}

TEST_CASE("a plugin that does not export one symbol is not loaded at all") {
  const auto report = run_plugin_contract(broken_directory + "broken_second_symbol.so", {});
  REQUIRE(report.has_value());
  CHECK(report->checks.size() == 1);
  CHECK_FALSE(report->passed());
}

TEST_CASE("a backend that is not available here is judged on what does not need the host") {
  const auto plan =
      run_only(broken_directory + "broken.so", {{"defect", "unavailable"}}, "ordinary_request_is_planned");
  CHECK(plan.checks.back().state == contract_check::outcome::not_applicable);
  CHECK(plan.checks.back().reason == "the backend is not available on this host (no-luck)");
  const auto probe =
      run_only(broken_directory + "broken.so", {{"defect", "unavailable"}}, "probe_answers_what_it_means");
  CHECK(probe.checks.back().state == contract_check::outcome::passed);
}

TEST_CASE("what is no readable regular file is an error that names it, and a FIFO does not block") {
  const test::temporary_directory directory;
  const std::string base = directory.path();
  CHECK(run_plugin_contract(base + "/missing.so", {}).error().code == error_code::not_found);
  CHECK(run_plugin_contract(base, {}).error().what.find("is not a regular file") != std::string::npos);
  REQUIRE(::mkfifo((base + "/fifo.so").c_str(), 0600) == 0);
  CHECK(run_plugin_contract(base + "/fifo.so", {}).error().what.find("is not a regular file") !=
        std::string::npos);
  std::filesystem::create_symlink(broken_directory + "broken.so", base + "/link.so");
  CHECK(run_plugin_contract(base + "/link.so", {}).error().hint ==
        "a plugin is a regular file, not a symbolic link");
}

TEST_CASE("a file that is no shared object fails its first check") {
  const test::temporary_directory directory;
  const std::string path = directory.path() + "/text.so";
  std::ofstream(path) << "not a plugin\n";
  const auto report = run_plugin_contract(path, {});
  REQUIRE(report.has_value());
  CHECK(report->checks.size() == 1);
  CHECK(report->checks[0].reason.find("is not an ELF file") != std::string::npos);
}

TEST_CASE("a check that does not exist is an error, not a suite that passes") {
  contract_options how;
  how.only = {"no_such_check"};
  const auto report = run_plugin_contract(broken_directory + "broken.so", how);
  REQUIRE(report.has_error());
  CHECK(report.error().what == "no check of the contract suite is called 'no_such_check'");
}

TEST_CASE("the suite leaves no file behind") {
  const test::temporary_directory directory;
  const std::string before = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
  ::setenv("TMPDIR", directory.path().c_str(), 1);
  run_only(broken_directory + "broken.so", {{"defect", "plan_aborts"}}, "ordinary_request_is_planned");
  before.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
  CHECK(std::filesystem::is_empty(directory.path()));
}
