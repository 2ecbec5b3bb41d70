// Checks of a backend's table and of probe.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "contract_checks.hpp"
#include "contract_resources.hpp"
#include "result.hpp"
#include "rule_bits.hpp"

namespace ccbox::contract {
namespace {

std::string_view kind_of(const instance& i) {
  return {i.backend()->kind.ptr, i.backend()->kind.len};
}

std::string depth_name(ccbox_probe_depth depth) {
  return depth == CCBOX_PROBE_QUICK ? "quick" : "full";
}

void backend_table_is_sane(const subject& s) {
  instance i(s);
  const auto* table = i.backend();
  expect(CCBOX_HAS(table, ccbox_backend, plan) && table->size <= 65536,
         "the size of the backend table, " + std::to_string(table->size) + ", is not one of this ABI");
  expect(table->probe && table->plan, "probe or plan is null");
  const auto kind = kind_of(i);
  expect(kind == "native" || kind == "microvm" || kind == "none",
         "the kind " + quoted(kind) + " is none of native, microvm, none");
}

void probe_answers_what_it_means(const subject& s) {
  instance i(s);
  for (const auto depth : {CCBOX_PROBE_QUICK, CCBOX_PROBE_FULL}) {
    const auto answer = ask_probe(i, depth);
    const auto who = "the " + depth_name(depth) + " probe ";
    expect(answer.status == CCBOX_OK, who + "returned " + status_name(answer.status) + ": " + answer.error +
                                          "; what this host lacks is an answer");
    expect(!answer.note.empty(), who + "has no note");
    expect((answer.enforced & ~known_rule_bits()) == 0,
           who + "claims " + join_rule_bits(answer.enforced & ~known_rule_bits()) +
               ", which this ABI version does not know");
    if (!answer.available) {
      expect(answer.enforced == 0, who + "claims rules although the backend is not available");
      expect(!answer.hint.empty(), who + "says not available without a hint for the operator");
      expect(!answer.cause.empty() && answer.cause.find(' ') == std::string::npos,
             who + "says not available without a one-word cause");
    }
    if (kind_of(i) == "none")
      expect((answer.enforced & ~CCBOX_RULE_RESOURCE_LIMITS) == 0,
             "kind none claims " + join_rule_bits(answer.enforced & ~CCBOX_RULE_RESOURCE_LIMITS));
    if (kind_of(i) != "microvm")
      expect(!(answer.enforced & CCBOX_RULE_KERNEL_BOUNDARY),
             "kernel_boundary is claimed, but the kind is not microvm");
  }
}

void probe_twice_answers_the_same(const subject& s) {
  instance i(s), another(s);
  for (const auto depth : {CCBOX_PROBE_QUICK, CCBOX_PROBE_FULL}) {
    const auto first = ask_probe(i, depth);
    expect(ask_probe(i, depth) == first,
           "the " + depth_name(depth) + " probe answers differently the second time");
    expect(ask_probe(another, depth) == first,
           "the " + depth_name(depth) + " probe of a second instance differs");
  }
}

void probe_is_quick(const subject& s) {
  instance i(s);
  const auto best_of_three = [&](ccbox_probe_depth depth) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int n = 0; n < 3; ++n) {
      const auto started = std::chrono::steady_clock::now();
      ask_probe(i, depth);
      best = std::min(best, std::chrono::steady_clock::now() - started);
    }
    return best;
  };
  expect(best_of_three(CCBOX_PROBE_QUICK) <= std::chrono::milliseconds(50) * s.time_factor,
         "the quick probe took longer than 50 ms");
  expect(best_of_three(CCBOX_PROBE_FULL) <= std::chrono::seconds(5) * s.time_factor,
         "the full probe took longer than 5 s");
}

void probe_leaves_nothing(const subject& s) {
  instance i(s);
  ask_probe(i, CCBOX_PROBE_FULL);
  const auto before = open_resources();
  for (int n = 0; n < 3; ++n)
    ask_probe(i, CCBOX_PROBE_FULL);
  for (int n = 0; n < 100; ++n)
    ask_probe(i, CCBOX_PROBE_QUICK);
  expect_nothing_left("probe", before, open_resources());
}

void quick_probe_starts_nothing(const subject& s) {
  instance i(s);
  forbid_side_effects();
  ask_probe(i, CCBOX_PROBE_QUICK);
}

void probe_texts_fit_their_buffers(const subject& s) {
  instance i(s);
  for (const std::size_t capacity : {0, 1, 2, 7, 40})
    ask_probe(i, CCBOX_PROBE_QUICK, capacity);
}

// A result whose declared size ends before `size` of this header; what follows it must stay as it is.
void ask_with_result_of_size(const instance& i, std::uint32_t declared, std::uint32_t total) {
  std::array<char, 64> note{}, hint{}, cause{}, error{};
  ccbox_probe_result result = {};
  result.size = declared;
  result.note = {note.data(), note.size(), 0};
  result.hint = {hint.data(), hint.size(), 0};
  result.cause = {cause.data(), cause.size(), 0};
  guarded_memory memory;
  auto* place = static_cast<char*>(memory.reserve(total));
  std::memcpy(place, &result, std::min<std::size_t>(total, sizeof result));
  const std::string behind(place + declared, total - declared);
  auto* request = static_cast<ccbox_probe_request*>(memory.reserve(sizeof(ccbox_probe_request)));
  *request = {sizeof(ccbox_probe_request), CCBOX_PROBE_QUICK, {}};
  ccbox_text text = {error.data(), error.size(), 0};
  const auto status =
      i.backend()->probe(i.get(), request, reinterpret_cast<ccbox_probe_result*>(place), &text);
  expect(status == CCBOX_OK || text.length > 0, "probe refused an older host without an error text");
  expect(std::string(place + declared, total - declared) == behind,
         "probe wrote beyond a result of " + std::to_string(declared) + " bytes");
}

void probe_keeps_to_declared_sizes(const subject& s) {
  instance i(s);
  // An older host: the result ends before one of the members, in memory and by its size.
  for (const std::size_t size : {offsetof(ccbox_probe_result, enforced), offsetof(ccbox_probe_result, note),
                                 offsetof(ccbox_probe_result, hint), offsetof(ccbox_probe_result, cause)})
    ask_with_result_of_size(i, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(size));
  // A newer host: 64 bytes that this plugin cannot know. They are inside the size and still not the plugin's.
  guarded_memory memory;
  constexpr std::uint32_t larger = sizeof(ccbox_probe_result) + 64;
  const auto reference = ask_probe(i, CCBOX_PROBE_QUICK);
  std::array<char, 512> note{}, hint{}, cause{}, error{};
  auto* place = static_cast<char*>(memory.reserve(larger));
  ccbox_probe_result result = {};
  result.size = larger;
  result.note = {note.data(), note.size(), 0};
  result.hint = {hint.data(), hint.size(), 0};
  result.cause = {cause.data(), cause.size(), 0};
  std::memcpy(place, &result, sizeof result);
  auto* request = static_cast<char*>(memory.reserve(sizeof(ccbox_probe_request) + 64));
  const ccbox_probe_request asked = {sizeof(ccbox_probe_request) + 64, CCBOX_PROBE_QUICK, {}};
  std::memcpy(request, &asked, sizeof asked);
  ccbox_text text = {error.data(), error.size(), 0};
  const auto status = i.backend()->probe(i.get(), reinterpret_cast<const ccbox_probe_request*>(request),
                                         reinterpret_cast<ccbox_probe_result*>(place), &text);
  std::memcpy(&result, place, sizeof result);
  expect(status == CCBOX_OK && (result.available == 1) == reference.available &&
             result.enforced == reference.enforced,
         "probe answers a newer host, with larger structs, differently");
  expect(std::string(place + sizeof result, 64) == std::string(64, '\xff'),
         "probe wrote members that it cannot know, behind the result of this version");
  // A request that ends before `depth`.
  auto* short_request =
      static_cast<ccbox_probe_request*>(memory.reserve(offsetof(ccbox_probe_request, depth)));
  short_request->size = offsetof(ccbox_probe_request, depth);
  std::memcpy(place, &result, sizeof result);
  text.length = 0;
  const auto refused =
      i.backend()->probe(i.get(), short_request, reinterpret_cast<ccbox_probe_result*>(place), &text);
  expect(refused == CCBOX_OK || text.length > 0, "probe refused an older host without an error text");
}

}  // namespace

const std::vector<check_entry>& probe_checks() {
  static const std::vector<check_entry> checks = {
      {"backend_table_is_sane", "the backend table is complete and its kind is one of the specification",
       backend_table_is_sane},
      {"probe_answers_what_it_means",
       "a note; no unknown rule bits; if not available a hint, a cause and no claims",
       probe_answers_what_it_means},
      {"probe_twice_answers_the_same", "the same host gives the same answer", probe_twice_answers_the_same},
      {"probe_is_quick", "quick takes at most 50 ms, full at most 5 s", probe_is_quick},
      {"probe_leaves_nothing", "no descriptor, thread or process is left", probe_leaves_nothing},
      {"quick_probe_starts_nothing", "the quick probe looks and changes nothing", quick_probe_starts_nothing},
      {"probe_texts_fit_their_buffers", "note, hint and cause are never longer than their buffers",
       probe_texts_fit_their_buffers},
      {"probe_keeps_to_declared_sizes",
       "structs of older and newer hosts are read and written within their sizes",
       probe_keeps_to_declared_sizes},
  };
  return checks;
}

}  // namespace ccbox::contract
