// Checks of plan: what holds for every plan is in contract_subject.cpp, here is what each request must lead
// to.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "contract_checks.hpp"
#include "contract_resources.hpp"
#include "result.hpp"
#include "rule_bits.hpp"

namespace ccbox::contract {
namespace {

constexpr std::uint64_t filesystem_bits = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_FS_READ_DENY |
                                          CCBOX_RULE_FS_WRITE_DENY | CCBOX_RULE_FS_NAME_DENY |
                                          CCBOX_RULE_EXEC_DENY;
constexpr std::uint64_t unknown_bits = (std::uint64_t{1} << 40) | (std::uint64_t{1} << 63);

// The bits this host lets the backend enforce. A backend that is not available here may refuse every plan.
std::uint64_t claimed_here(const instance& i) {
  const auto probed = ask_probe(i, CCBOX_PROBE_FULL);
  if (probed.status != CCBOX_OK || !probed.available)
    throw not_applicable{"the backend is not available on this host (" + probed.cause + ")"};
  return probed.enforced;
}

std::string refusal(const plan_answer& answer) {
  return status_name(answer.status) + " " + quoted(answer.error);
}

void ordinary_request_is_planned(const subject& s) {
  instance i(s);
  claimed_here(i);
  auto input = ordinary_input(s);
  const auto answer = ask_plan(i, input);
  expect(answer.ok(), "an ordinary request is refused: " + refusal(answer));
  input.channel_fd = 17;
  input.init_fd = 18;
  const auto moved = ask_plan(i, input);
  expect(moved.ok(), "a request with other descriptor numbers is refused: " + refusal(moved));
}

void plan_enforces_what_probe_claims(const subject& s) {
  instance i(s);
  const auto claimed = claimed_here(i);
  auto input = ordinary_input(s);
  input.required = claimed;
  const auto answer = ask_plan(i, input);
  expect(answer.ok(), "a request for what the probe claims is refused: " + refusal(answer));
  expect((claimed & ~answer.plan.enforced) == 0, "the probe claims " +
                                                     join_rule_bits(claimed & ~answer.plan.enforced) +
                                                     ", the plan does not enforce it");
  expect((answer.plan.enforced & ~claimed) == 0,
         "the plan claims " + join_rule_bits(answer.plan.enforced & ~claimed) + ", the probe does not");
}

void unenforceable_bits_are_not_claimed(const subject& s) {
  instance i(s);
  const auto claimed = claimed_here(i);
  for (const auto extra : {unknown_bits, known_rule_bits() & ~claimed, ~std::uint64_t{0} & ~claimed}) {
    auto input = ordinary_input(s);
    input.required = claimed | extra;
    const auto answer = ask_plan(i, input);
    expect(!answer.ok() || (answer.plan.enforced & extra) == 0,
           "plan claims " + join_rule_bits(answer.plan.enforced & extra) + " back because it was required");
  }
}

void unknown_rules_are_not_claimed(const subject& s) {
  instance i(s);
  claimed_here(i);
  auto input = ordinary_input(s);
  // A newer host's rule under a newer bit: planned without it, or refused.
  input.rules.push_back({900, 0xffff0000u, std::uint64_t{1} << 40, s.directory, s.directory, "newer"});
  input.required = std::uint64_t{1} << 40;
  const auto newer = ask_plan(i, input);
  expect(!newer.ok() || (newer.plan.enforced & unknown_bits) == 0,
         "plan claims the bit of a rule that it cannot know");
  // An unknown kind under a known bit: whoever claims that bit claims to have applied the rule.
  for (const auto& entry : all_rule_bits()) {
    if (!(entry.bit & filesystem_bits)) continue;
    input = ordinary_input(s);
    input.rules.push_back({900, 0, entry.bit, s.directory, s.directory, "newer"});
    const auto answer = ask_plan(i, input);
    expect(!answer.ok() || !(answer.plan.enforced & entry.bit),
           "plan skips a rule of unknown kind and still claims " + std::string(entry.name));
  }
}

void waived_bits_are_given_up_one_by_one(const subject& s) {
  instance i(s);
  const auto claimed = claimed_here(i);
  for (const auto& entry : all_rule_bits()) {
    if (!entry.waivable) continue;
    auto input = ordinary_input(s);
    input.waived = entry.bit;
    input.required = claimed & ~entry.bit;
    if (entry.bit == CCBOX_RULE_NET_PROXY_ONLY) input.network = CCBOX_NETWORK_HOST;
    const auto answer = ask_plan(i, input);
    expect(answer.ok(), "a request without " + std::string(entry.name) + " is refused: " + refusal(answer));
    expect((input.required & ~answer.plan.enforced) == 0,
           "without " + std::string(entry.name) + " the plan loses " +
               join_rule_bits(input.required & ~answer.plan.enforced) + " too");
    if (entry.bit == CCBOX_RULE_NET_PROXY_ONLY)
      expect(!(answer.plan.enforced & entry.bit), "plan claims net_proxy_only on the host's network");
  }
}

void empty_request_does_no_harm(const subject& s) {
  instance i(s);
  auto input = ordinary_input(s);
  input.rules.clear();
  ask_plan(i, input);
  ask_plan(i, plan_input{});
}

void same_request_gives_the_same_plan(const subject& s) {
  instance i(s), another(s);
  const plan_question question(ordinary_input(s));
  const auto first = question.ask(i);
  for (int n = 0; n < 5; ++n)
    expect(question.ask(i) == first, "the same request gives another plan");
  expect(question.ask(another) == first, "a second instance plans the same request differently");
  // The same bytes at other addresses: nothing was kept from the first.
  expect(ask_plan(i, ordinary_input(s)) == first, "the same request at another address gives another plan");
}

void threads_plan_at_once(const subject& s) {
  instance i(s);
  auto other = ordinary_input(s);
  other.session_id = "contract-2";
  other.rules.pop_back();
  other.workdir = "/usr";
  const plan_question questions[] = {plan_question(ordinary_input(s)), plan_question(other)};
  const plan_answer expected[] = {questions[0].ask(i), questions[1].ask(i)};
  std::exception_ptr broken[4];
  std::barrier start(4);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      try {
        for (int n = 0; n < 50; ++n)
          expect(questions[t % 2].ask(i) == expected[t % 2],
                 "plans made by four threads at once differ from one made alone");
      } catch (const violation&) {
        broken[t] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  for (const auto& v : broken)
    if (v) std::rethrow_exception(v);
}

void plan_starts_and_writes_nothing(const subject& s) {
  instance i(s);
  const plan_question question(ordinary_input(s));
  const auto before = open_resources();
  question.ask(i);
  const auto after = open_resources();
  expect_nothing_left("plan", before, after);
  expect(after.threads == before.threads, "plan changed the number of threads");
  forbid_side_effects();
  question.ask(i);
}

void plan_leaks_nothing(const subject& s) {
  instance i(s);
  const plan_question question(ordinary_input(s));
  auto refused = ordinary_input(s);
  const plan_question bad(refused, {.request_size = 8});
  expect_no_growth("plan, 100 times,", [&] {
    question.ask(i);
    bad.ask(i);
  });
}

// CPU time of this thread: what a busy machine does meanwhile is not the plugin's.
std::chrono::nanoseconds cpu_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

plan_answer ask_within_limit(const instance& i, const subject& s, const plan_input& input,
                             const std::string& what) {
  const plan_question question(input);
  auto best = std::chrono::nanoseconds::max();
  std::optional<plan_answer> answer;
  for (int n = 0; n < 3; ++n) {
    const auto started = cpu_time();
    answer = question.ask(i);
    best = std::min(best, cpu_time() - started);
  }
  expect(best <= std::chrono::milliseconds(50) * s.time_factor, "a plan " + what + " took " +
                                                                    std::to_string(best.count() / 1'000'000) +
                                                                    " ms of CPU; the limit is 50 ms");
  return *answer;
}

void plan_is_quick(const subject& s) {
  instance i(s);
  ask_within_limit(i, s, ordinary_input(s), "for an ordinary request");
}

void ten_thousand_mounts_do_no_harm(const subject& s) {
  instance i(s);
  claimed_here(i);
  auto input = ordinary_input(s);
  std::vector<rule_input> mounts;
  for (int n = 0; n < 10'000; ++n) {
    const auto path = s.directory + "/tree/mount-" + std::to_string(n);
    mounts.push_back({CCBOX_KIND_MOUNT, CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY, CCBOX_RULE_FS_BINDS_ONLY,
                      path, path, "mount of the spec"});
  }
  mounts.insert(mounts.end(), input.rules.begin(), input.rules.end());
  input.rules = std::move(mounts);
  const auto answer = ask_within_limit(i, s, input, "with 10,000 mounts");
  expect(answer.ok() || answer.status == CCBOX_TOO_LARGE,
         "10,000 mounts are neither planned nor CCBOX_TOO_LARGE: " + refusal(answer));
  if (!answer.ok() || !(answer.plan.enforced & CCBOX_RULE_FS_BINDS_ONLY)) return;
  const auto texts = answer.plan.texts();
  const auto last = s.directory + "/tree/mount-9999";
  expect(std::any_of(texts.begin(), texts.end(), [&](auto text) { return text.find(last) != text.npos; }),
         "the plan claims fs_binds_only and the last of 10,000 mounts is not in it");
}

// ---- bytes of paths

constexpr std::string_view marker = "Q7x";

struct hostile_name {
  std::string what, bytes;
};
std::vector<hostile_name> hostile_names() {
  return {{"a NUL byte", std::string("a\0b", 3)},
          {"invalid UTF-8", "\xff\xfe\xc0\xaf"},
          {"a newline", "a\nb"},
          {"glob characters", "*?[a-z]{b,c}"},
          {"quotes and a backslash", "\"a\\b'c"},
          {"a space, a comma and a colon", " a,b:c=d"},
          {"an escape sequence", "\x1b[31m"}};
}

std::string full_name(const hostile_name& name) {
  return std::string(marker) + name.bytes + "Z9";
}

// The order of a policy: mounts before everything else.
void add_mount(plan_input& in, rule_input rule) {
  const auto after = std::find_if(in.rules.begin(), in.rules.end(),
                                  [](const rule_input& r) { return r.kind != CCBOX_KIND_MOUNT; });
  in.rules.insert(after, std::move(rule));
}

// Every place where the plan mentions the marker must carry the whole name, byte for byte.
bool arrives_unchanged(const recorded_plan& plan, const std::string& name) {
  for (const auto text : plan.texts()) {
    for (auto at = text.find(marker); at != text.npos; at = text.find(marker, at + 1))
      if (text.substr(at, name.size()) != name) return false;
  }
  return true;
}
bool is_mentioned(const recorded_plan& plan, const std::string& name) {
  const auto texts = plan.texts();
  return std::any_of(texts.begin(), texts.end(), [&](auto text) { return text.find(name) != text.npos; });
}

void path_bytes_arrive_unchanged_or_are_refused(const subject& s) {
  instance i(s);
  claimed_here(i);
  for (const auto& hostile : hostile_names()) {
    const std::string name = full_name(hostile);
    const std::string path = s.directory + "/tree/" + name;
    const auto exists = CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY;
    const std::vector<std::pair<std::string, std::function<void(plan_input&)>>> places = {
        {"a mount",
         [&](plan_input& in) {
           add_mount(in, {CCBOX_KIND_MOUNT, exists, CCBOX_RULE_FS_BINDS_ONLY, path, path, "hostile"});
         }},
        {"a mount's place inside",
         [&](plan_input& in) {
           add_mount(in, {CCBOX_KIND_MOUNT, exists, CCBOX_RULE_FS_BINDS_ONLY, s.directory + "/tree",
                          "/" + name, "hostile"});
         }},
        {"a read deny",
         [&](plan_input& in) {
           in.rules.push_back({CCBOX_KIND_READ_DENY, exists, CCBOX_RULE_FS_READ_DENY, path, path, "hostile"});
         }},
        {"a write deny",
         [&](plan_input& in) {
           in.rules.push_back(
               {CCBOX_KIND_WRITE_DENY, exists, CCBOX_RULE_FS_WRITE_DENY, path, path, "hostile"});
         }},
        {"the working directory", [&](plan_input& in) { in.workdir = path; }},
        {"the home directory", [&](plan_input& in) { in.home = "/run/" + name; }},
        {"the temporary directory", [&](plan_input& in) { in.tmpdir = "/run/" + name; }},
        {"the session's id", [&](plan_input& in) { in.session_id = name; }},
    };
    for (std::size_t p = 0; p < places.size(); ++p) {
      auto input = ordinary_input(s);
      places[p].second(input);
      const auto answer = ask_plan(i, input);
      if (!answer.ok()) continue;
      const auto where = hostile.what + " in " + places[p].first;
      expect(arrives_unchanged(answer.plan, name), where + " is changed on its way into the plan");
      // A path cannot have a NUL byte: whoever passes it on lets it end one argument and begin another.
      const bool has_nul = hostile.bytes.find('\0') != std::string::npos;
      expect(!has_nul || !is_mentioned(answer.plan, name), where + " is passed on instead of refused");
      const bool is_mount = p < 2;
      if (is_mount && (answer.plan.enforced & CCBOX_RULE_FS_BINDS_ONLY))
        expect(is_mentioned(answer.plan, name),
               where + ": the plan claims fs_binds_only and leaves the mount out");
    }
  }
}

// ---- other versions of the host

void newer_host_gets_the_same_plan(const subject& s) {
  instance i(s);
  const auto expected = ask_plan(i, ordinary_input(s));
  expect(ask_plan(i, ordinary_input(s), {.request_extra = 64}) == expected,
         "a larger request changes the plan");
  expect(ask_plan(i, ordinary_input(s), {.sink_extra = 64}) == expected, "a larger sink changes the plan");
  expect(ask_plan(i, ordinary_input(s), {.stride_extra = 40}) == expected,
         "larger rules change the plan: step by rule_stride");
}

void truncated_request_is_read_within_its_size(const subject& s) {
  instance i(s);
  const std::size_t ends[] = {
      offsetof(ccbox_plan_request, rule_stride), offsetof(ccbox_plan_request, rules),
      offsetof(ccbox_plan_request, rule_count),  offsetof(ccbox_plan_request, required),
      offsetof(ccbox_plan_request, waived),      offsetof(ccbox_plan_request, session_id),
      offsetof(ccbox_plan_request, workdir),     offsetof(ccbox_plan_request, home),
      offsetof(ccbox_plan_request, tmpdir),      offsetof(ccbox_plan_request, network),
      offsetof(ccbox_plan_request, uid),         offsetof(ccbox_plan_request, gid),
      offsetof(ccbox_plan_request, channel_fd),  offsetof(ccbox_plan_request, init_fd),
      offsetof(ccbox_plan_request, init_path)};
  for (const auto end : ends) {
    const auto answer = ask_plan(i, ordinary_input(s), {.request_size = static_cast<std::uint32_t>(end)});
    expect(
        !answer.ok() || end > offsetof(ccbox_plan_request, channel_fd),
        "a request of " + std::to_string(end) + " bytes has no control channel and is planned all the same");
  }
}

void truncated_sink_is_called_within_its_size(const subject& s) {
  instance i(s);
  const std::size_t ends[] = {offsetof(ccbox_plan_sink, ctx),         offsetof(ccbox_plan_sink, argument),
                              offsetof(ccbox_plan_sink, environment), offsetof(ccbox_plan_sink, file),
                              offsetof(ccbox_plan_sink, open_path),   offsetof(ccbox_plan_sink, layer),
                              offsetof(ccbox_plan_sink, enforces),    offsetof(ccbox_plan_sink, flags),
                              offsetof(ccbox_plan_sink, denials)};
  for (const auto end : ends)
    ask_plan(i, ordinary_input(s), {.sink_size = static_cast<std::uint32_t>(end)});
}

void plan_error_fits_its_buffer(const subject& s) {
  instance i(s);
  for (const std::size_t capacity : {0, 1, 2, 7, 40, 4096}) {
    const auto answer = ask_plan(i, ordinary_input(s), {.request_size = 8, .error_capacity = capacity});
    expect(!answer.ok(), "a request of 8 bytes is planned");
  }
}

}  // namespace

std::vector<std::string> hostile_directory_names() {
  std::vector<std::string> out;
  for (const auto& hostile : hostile_names())
    if (hostile.bytes.find('\0') == std::string::npos) out.push_back(full_name(hostile));
  return out;
}

const std::vector<check_entry>& plan_checks() {
  static const std::vector<check_entry> checks = {
      {"ordinary_request_is_planned",
       "argv starts with an absolute path and ends in ccbox-init with the given channel",
       ordinary_request_is_planned},
      {"plan_enforces_what_probe_claims", "probe and plan claim the same rule bits",
       plan_enforces_what_probe_claims},
      {"unenforceable_bits_are_not_claimed",
       "required bits that it does not know or cannot keep are not echoed back",
       unenforceable_bits_are_not_claimed},
      {"unknown_rules_are_not_claimed", "a rule of unknown kind is refused, or its bit is not claimed",
       unknown_rules_are_not_claimed},
      {"waived_bits_are_given_up_one_by_one", "giving up one rule bit costs no other",
       waived_bits_are_given_up_one_by_one},
      {"empty_request_does_no_harm", "a request without rules, or with nothing at all, is planned or refused",
       empty_request_does_no_harm},
      {"same_request_gives_the_same_plan", "a plan depends on the request and nothing else",
       same_request_gives_the_same_plan},
      {"threads_plan_at_once", "four threads may plan at once", threads_plan_at_once},
      {"plan_starts_and_writes_nothing", "plan only answers: no process, no file, no descriptor",
       plan_starts_and_writes_nothing},
      {"plan_leaks_nothing", "100 plans leave no descriptor, thread, process or memory", plan_leaks_nothing},
      {"plan_is_quick", "an ordinary plan takes at most 50 ms", plan_is_quick},
      {"ten_thousand_mounts_do_no_harm", "10,000 mounts are planned or CCBOX_TOO_LARGE, in 50 ms",
       ten_thousand_mounts_do_no_harm},
      {"path_bytes_arrive_unchanged_or_are_refused",
       "paths are bytes: no glob, quote or newline in them means anything",
       path_bytes_arrive_unchanged_or_are_refused},
      {"newer_host_gets_the_same_plan", "larger structs of a newer host change nothing",
       newer_host_gets_the_same_plan},
      {"truncated_request_is_read_within_its_size", "nothing beyond the declared size is read, nor claimed",
       truncated_request_is_read_within_its_size},
      {"truncated_sink_is_called_within_its_size", "nothing beyond the declared size is called",
       truncated_sink_is_called_within_its_size},
      {"plan_error_fits_its_buffer", "an error text is set, and never longer than its buffer",
       plan_error_fits_its_buffer},
  };
  return checks;
}

}  // namespace ccbox::contract
