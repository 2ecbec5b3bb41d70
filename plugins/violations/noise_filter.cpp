#include "noise_filter.hpp"

#include "ccbox/glob.hpp"
#include "ccbox/plugin.hpp"

namespace ccbox::violations {
namespace {

struct entry {
  std::string_view action, target;
};

constexpr entry built_in[] = {
    // Programs ask for the terminal that they have none of, or for more of it than they need.
    {"*", "/dev/tty*"},
    {"*", "/dev/console"},
    // Caches: the work is done without them.
    {"file*", "/etc/ld.so.cache*"},
    {"file-write*", "*/__pycache__*"},
    {"file*", "*.pyc"},
    {"file*", "*/fontconfig/*"},
    // Priorities and the like, which programs lower and raise for themselves.
    {"*", "/proc/*/oom_score_adj"},
    {"*", "/proc/*/oom_adj"},
    {"*", "/proc/*/timerslack_ns"},
    {"*", "/sys/fs/cgroup*"},
    {"*", "/sys/devices/*"},
    {"system-call", "nice"},
    {"system-call", "ionice"},
    {"system-call", "renice"},
};

bool matches(std::string_view action_pattern, std::string_view target_pattern, std::string_view action,
             std::string_view target) {
  return wildcard_match(action_pattern, action) && wildcard_match(target_pattern, target);
}

std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text = end == text.npos ? std::string_view() : text.substr(end + 1);
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

noise_filter::noise_filter(std::string_view entries, bool with_built_in) : built_in_(with_built_in) {
  for (unsigned number = 1; !entries.empty(); ++number) {
    const auto line = next_line(entries);
    if (line.empty() || line.front() == '#') continue;
    const auto space = line.find_first_of(" \t");
    if (space == line.npos)
      throw plugin::failure(CCBOX_INVALID,
                            "option 'ignore', line " + std::to_string(number) + ": '" + std::string(line) +
                                "' is no pattern for the action and one for the target, such as "
                                "'file-write* *.pyc'");
    own_.emplace_back(line.substr(0, space), line.substr(line.find_first_not_of(" \t", space)));
  }
}

bool noise_filter::covers(std::string_view action, std::string_view target) const {
  for (const auto& [for_action, for_target] : own_)
    if (matches(for_action, for_target, action, target)) return true;
  if (!built_in_) return false;
  for (const auto& each : built_in)
    if (matches(each.action, each.target, action, target)) return true;
  return false;
}

}  // namespace ccbox::violations
