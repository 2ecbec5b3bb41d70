// Checks of a monitor's table and of what it makes of denials and output.
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>

#include "contract_checks.hpp"
#include "contract_resources.hpp"
#include "result.hpp"

namespace ccbox::contract {
namespace {

const ccbox_monitor& table_of(const subject& s, const instance& i) {
  const ccbox_str name{CCBOX_MONITOR_EXTENSION, sizeof CCBOX_MONITOR_EXTENSION - 1};
  const auto* table = static_cast<const ccbox_monitor*>(s.descriptor->get_extension(i.get(), name));
  if (!table) throw not_applicable{"the plugin is no monitor"};
  expect(CCBOX_HAS(table, ccbox_monitor, close) && table->size <= 65536,
         "the size of the monitor table, " + std::to_string(table->size) + ", is not one of this ABI");
  expect(table->open && table->denial && table->output && table->flush && table->close,
         "a function of the monitor table is null");
  return *table;
}

// What a monitor has told, and the first thing that is wrong with it.
struct told {
  std::uint64_t violations = 0, count = 0;
  std::string wrong;

  void take(const ccbox_violation* given) {
    if (!given || !CCBOX_HAS(given, ccbox_violation, raw) || given->size > 65536) {
      wrong = "it tells of a violation whose size is not one of this ABI";
      return;
    }
    if (given->action.len == 0) wrong = "it tells of a violation without an action";
    if (given->count == 0) wrong = "it tells of a violation that stands for none";
    // Reads every byte: a borrowed one is gone.
    std::string bytes;
    for (const auto& text : {given->action, given->target, given->suggested_capability, given->raw})
      if (text.len > 0) bytes.append(text.ptr, text.len);
    ++violations;
    count += given->count;
  }
};

struct request_shape {
  std::uint32_t size_extra = 0, stride_extra = 0;
};

// One watch over a session with a secret. Whatever it is given is gone when the call returns.
class watched {
 public:
  watched(const subject& s, const instance& i, bool denials_reported, const request_shape& shape = {})
      : table_(table_of(s, i)) {
    guarded_memory memory;
    const std::uint32_t stride = sizeof(ccbox_rule) + shape.stride_extra;
    const auto home = memory.text("/ccbox-contract/home"), secret = memory.text(std::string(secret_path));
    const ccbox_rule rules[] = {{CCBOX_KIND_MOUNT, CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY,
                                 CCBOX_RULE_FS_BINDS_ONLY, home, home, memory.text("mount")},
                                {CCBOX_KIND_READ_DENY, CCBOX_RULE_EXISTS, CCBOX_RULE_FS_READ_DENY, secret,
                                 secret, memory.text("a secret")}};
    auto* place = static_cast<char*>(memory.reserve(stride * std::size(rules)));
    for (std::size_t n = 0; n < std::size(rules); ++n)
      std::memcpy(place + n * stride, &rules[n], sizeof rules[n]);
    ccbox_monitor_request request{};
    request.size = static_cast<std::uint32_t>(sizeof request) + shape.size_extra;
    request.flags = denials_reported ? std::uint32_t{CCBOX_MONITOR_DENIALS_REPORTED} : 0u;
    request.rules = reinterpret_cast<const ccbox_rule*>(place);
    request.rule_count = std::size(rules);
    request.rule_stride = stride;
    request.enforced = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_FS_READ_DENY;
    request.session_id = memory.text("contract");
    request.workdir = home;
    auto* asked = memory.reserve(request.size);
    std::memcpy(asked, &request, sizeof request);
    text_buffer error(512);
    const auto status =
        table_.open(i.get(), static_cast<const ccbox_monitor_request*>(asked), &watch_, &error.text());
    expect(status == CCBOX_OK && watch_, "open returned " + status_name(status) + " and " +
                                             (watch_ ? "a" : "no") + " watch: " + quoted(error.take("open")));
  }
  ~watched() {
    if (watch_) table_.close(watch_);
  }
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;

  told denial(std::string_view action, std::string_view target, std::uint64_t count = 1,
              std::uint32_t size_extra = 0) {
    guarded_memory memory;
    ccbox_violation given{};
    given.size = static_cast<std::uint32_t>(sizeof given) + size_extra;
    given.count = count;
    given.action = memory.text(action);
    given.target = memory.text(target);
    given.suggested_capability = memory.text("canPush");
    given.raw = memory.text("{}");
    auto* place = memory.reserve(given.size);
    std::memcpy(place, &given, sizeof given);
    return called(memory, [&](const ccbox_monitor_sink* sink) {
      table_.denial(watch_, static_cast<const ccbox_violation*>(place), sink);
    });
  }
  told output(std::uint64_t exec_id, std::string_view bytes) {
    guarded_memory memory;
    const auto text = memory.text(bytes);
    return called(memory,
                  [&](const ccbox_monitor_sink* sink) { table_.output(watch_, exec_id, text, sink); });
  }
  told flush(bool last) {
    guarded_memory memory;
    return called(memory, [&](const ccbox_monitor_sink* sink) { table_.flush(watch_, last ? 1 : 0, sink); });
  }

  static constexpr std::string_view secret_path = "/ccbox-contract/home/secret";

 private:
  template <class Call>
  told called(guarded_memory& memory, Call&& call) {
    told out;
    ccbox_monitor_sink sink{};
    sink.size = sizeof sink;
    sink.ctx = &out;
    sink.violation = [](void* ctx, const ccbox_violation* given) { static_cast<told*>(ctx)->take(given); };
    auto* place = memory.reserve(sizeof sink);
    std::memcpy(place, &sink, sizeof sink);
    call(static_cast<const ccbox_monitor_sink*>(place));
    expect(out.wrong.empty(), out.wrong);
    return out;
  }

  const ccbox_monitor& table_;
  ccbox_watch* watch_ = nullptr;
};

void monitor_table_is_sane(const subject& s) {
  instance i(s);
  table_of(s, i);
}

void monitor_keeps_nothing_borrowed(const subject& s) {
  instance i(s);
  watched watch(s, i, true);
  watch.denial("file-write-create", "/ccbox-contract/home/.env");
  watch.denial("file-write-create", "/ccbox-contract/home/.env");
  watch.output(1, "cat: " + std::string(watched::secret_path) + ": Permission ");
  watch.output(1, "denied");
  watch.flush(false);
  watch.denial("file-write-create", "/ccbox-contract/home/.env");
  watch.output(1, {});
  watch.flush(true);
}

void monitor_invents_nothing(const subject& s) {
  constexpr std::uint64_t denials = 10'000;
  const guarded_memory::give_back reuse;
  instance i(s);
  watched watch(s, i, true);
  std::uint64_t count = 0;
  for (std::uint64_t n = 0; n < denials; ++n)
    count += watch.denial("file-write-create", "/ccbox-contract/" + std::to_string(n / 10)).count;
  count += watch.flush(true).count;
  expect(count <= denials, std::to_string(denials) + " denials became " + std::to_string(count));
  watched quiet(s, i, true);
  expect(quiet.output(1, "all is well\n").violations + quiet.flush(true).violations == 0,
         "it tells of a violation where nothing was refused");
}

void monitor_takes_any_bytes(const subject& s) {
  instance i(s);
  std::string every;
  for (unsigned n = 0; n < 256; ++n)
    every += static_cast<char>(n);
  for (const bool denials_reported : {false, true}) {
    watched watch(s, i, denials_reported);
    for (const std::string& bytes :
         {every, std::string(1, '\0'), "Permission denied" + every + "\n", std::string("\xff\xfe: EPERM\r"),
          std::string(1 << 20, 'x'), std::string("'\": Operation not permitted\n"), every + every}) {
      watch.output(1, bytes);
      watch.output(2, bytes.substr(0, 1));
      watch.denial(bytes.substr(0, 100), bytes.substr(0, 4096));
    }
    watch.output(3, {});  // of a command that has written nothing
    watch.output(1, {});
    watch.flush(true);
  }
}

void monitor_leaks_nothing(const subject& s) {
  instance i(s);
  table_of(s, i);
  guarded_memory::give_back measuring;
  expect_no_growth("a watch, opened and closed 100 times,", [&] {
    watched watch(s, i, false);
    watch.denial("file-write-create", "/ccbox-contract/.env");
    watch.output(1, "cat: /x: Permission den");
  });
}

void monitor_reads_newer_hosts(const subject& s) {
  instance i(s);
  watched watch(s, i, false, {64, 16});
  watch.denial("file-write-create", "/ccbox-contract/.env", 1, 32);
  watch.flush(true);
}

void monitor_is_quick(const subject& s) {
  constexpr unsigned denials = 1000;
  const guarded_memory::give_back reuse;
  instance i(s);
  watched watch(s, i, false);
  std::string lines;
  while (lines.size() < (64 << 10))
    lines += "cat: /ccbox-contract/" + std::to_string(lines.size()) + ": Permission denied\n";
  const auto best_of_three = [&](const auto& action) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int n = 0; n < 3; ++n) {
      const auto started = std::chrono::steady_clock::now();
      action();
      best = std::min(best, std::chrono::steady_clock::now() - started);
    }
    return best;
  };
  expect(best_of_three([&] { watch.output(1, lines); }) <= std::chrono::milliseconds(5) * s.time_factor,
         "64 KiB of output took longer than 5 ms");
  const auto many = best_of_three([&] {
    for (unsigned n = 0; n < denials; ++n)
      watch.denial("file-write-create", "/ccbox-contract/" + std::to_string(n));
  });
  expect(many <= std::chrono::milliseconds(denials) * s.time_factor, "a denial took longer than 1 ms");
}

}  // namespace

const std::vector<check_entry>& monitor_checks() {
  static const std::vector<check_entry> checks = {
      {"monitor_table_is_sane", "the table of a monitor is complete", monitor_table_is_sane},
      {"monitor_keeps_nothing_borrowed", "what the monitor is given is not read after the call",
       monitor_keeps_nothing_borrowed},
      {"monitor_invents_nothing", "violations have an action and stand for what was denied, and for no more",
       monitor_invents_nothing},
      {"monitor_takes_any_bytes", "output and denials may be any bytes", monitor_takes_any_bytes},
      {"monitor_leaks_nothing", "100 watches leave no descriptor, thread, process or memory",
       monitor_leaks_nothing},
      {"monitor_reads_newer_hosts", "larger structs of a newer host are read right",
       monitor_reads_newer_hosts},
      {"monitor_is_quick", "a denial takes at most 1 ms, 64 KiB of output 5 ms", monitor_is_quick},
  };
  return checks;
}

}  // namespace ccbox::contract
