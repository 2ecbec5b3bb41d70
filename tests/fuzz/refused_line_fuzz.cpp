#include "plugins/violations/refused_line.hpp"

#include "fuzz/target.hpp"
#include "json_reader.hpp"
#include "plugins/violations/json_text.hpp"
#include "plugins/violations/line_reader.hpp"

namespace {

using namespace ccbox::violations;

std::vector<std::string> lines_of(std::string_view output, std::size_t piece) {
  std::vector<std::string> out;
  line_reader reader;
  const auto each = [&](std::string_view line) { out.emplace_back(line); };
  for (std::size_t at = 0; at < output.size(); at += piece)
    reader.add(output.substr(at, piece), each);
  reader.end(each);
  return out;
}

// What a sandboxed command writes to its standard error.
void run(std::string_view output) {
  const auto lines = lines_of(output, output.size() + 1);
  for (const std::size_t piece : {1, 7})
    fuzz::require(lines_of(output, piece) == lines, "lines are the same in pieces of any size");
  for (const auto& line : lines) {
    fuzz::require(line.size() <= line_reader::most_bytes, "a line is bounded");
    fuzz::require(line.find_first_of("\n\r") == line.npos, "a line is one");
    const auto refused = read_refused_line(line);
    if (!refused) continue;
    fuzz::require(!refused->action.empty() && !refused->target.empty(), "a refusal has a verb and an object");
    fuzz::require(refused->target.size() <= line.size() || !refused->is_path, "a path is a part of the line");
    const auto raw = json_object().text("line", line).text("target", refused->target).str();
    fuzz::require(ccbox::parse_json(raw).has_value(), "what is told of it is JSON");
  }
}

const fuzz::registered target("refused_line", run);

}  // namespace
