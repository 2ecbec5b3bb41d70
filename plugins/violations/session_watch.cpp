#include "session_watch.hpp"

#include "json_text.hpp"

namespace ccbox::violations {

session_watch::session_watch(const noise_filter& noise, const plugin::monitor_request& request)
    : noise_(noise), masked_(request), denials_reported_(request.has(CCBOX_MONITOR_DENIALS_REPORTED)) {}

void session_watch::denial(const plugin::violation& denied, plugin::monitor_sink& sink) {
  if (!noise_.covers(denied.action, denied.target)) tally_.add(denied, tally::clock::now(), sink);
}

void session_watch::output(std::uint64_t exec_id, std::string_view bytes, plugin::monitor_sink& sink) {
  const auto known = readers_.find(exec_id);
  if (known == readers_.end() && (bytes.empty() || readers_.size() >= most_commands)) return;
  auto& reader = known == readers_.end() ? readers_[exec_id] : known->second;
  std::size_t lines = 0;
  const auto each = [&](std::string_view line) {
    if (++lines <= most_lines)
      read(exec_id, line, sink);
    else if (!denials_reported_)
      tally_.add_unread(1);
  };
  if (!bytes.empty()) return reader.add(bytes, each);
  reader.end(each);
  readers_.erase(exec_id);
}

void session_watch::read(std::uint64_t exec_id, std::string_view line, plugin::monitor_sink& sink) {
  const auto refused = read_refused_line(line);
  if (!refused) return;
  json_object raw;
  raw.text("source", "stderr").text("line", without_escape_sequences(line));
  if (!refused->program.empty()) raw.text("program", refused->program);
  auto action = refused->action;
  auto target = refused->target;
  const auto* mask = refused->is_path ? masked_.find(masked_.absolute(target)) : nullptr;
  const bool may_be_read = action == "file*" || action.starts_with("file-read");
  if (mask && may_be_read) {
    action = "file-read-data";
    target = masked_.absolute(target);
    raw.text("rule", mask->rule).text("reason", mask->reason);
  } else if (denials_reported_ || noise_.covers(action, target)) {
    return;
  }
  const auto json = raw.str();
  tally_.add({exec_id, 1, action, target, {}, json}, tally::clock::now(), sink);
}

std::uint32_t session_watch::flush(bool last, plugin::monitor_sink& sink) {
  if (last) {
    // What a terminal still held when its command had ended.
    for (auto& [exec_id, reader] : readers_)
      reader.end([&, id = exec_id](std::string_view line) { read(id, line, sink); });
    readers_.clear();
  }
  tally_.flush(tally::clock::now(), sink);
  return 0;
}

}  // namespace ccbox::violations
