#include "plugins/bubblewrap/broker/git_config.hpp"

#include "fuzz/target.hpp"

namespace {

using namespace ccbox::bubblewrap;

// As git writes a value, whatever is in it.
std::string quoted(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + '"';
}

void run(std::string_view input) {
  std::string problem;
  const auto settings = parse_git_config(input, problem);
  fuzz::require(settings.has_value() == problem.empty(), "what is refused has a reason");
  const auto objection = objection_to_git_config(input, "/w/.git/modules/m");
  fuzz::require(settings.has_value() || objection == problem, "what cannot be read is not harmless");
  if (!settings) return;

  std::string written;
  for (const auto& setting : *settings) {
    const auto first = setting.key.find('.'), last = setting.key.rfind('.');
    fuzz::require(first != setting.key.npos && last + 1 < setting.key.size(),
                  "a key has a section and a name");
    fuzz::require(setting.value.find('\0') == setting.value.npos, "a value has no NUL");
    if (setting.value.empty()) return;  // empty quotes are refused
    written += "[" + setting.key.substr(0, first);
    if (first != last) {
      const auto subsection = quoted(setting.key.substr(first + 1, last - first - 1));
      if (subsection.find("\\n") != subsection.npos) return;
      written += " " + subsection;
    }
    written += "]\n" + setting.key.substr(last + 1) + " = " + quoted(setting.value) + "\n";
  }
  const auto again = parse_git_config(written, problem);
  fuzz::require(again.has_value() && again->size() == settings->size(), "what is written anew is accepted");
  for (std::size_t i = 0; i < settings->size(); ++i)
    fuzz::require((*again)[i].key == (*settings)[i].key && (*again)[i].value == (*settings)[i].value,
                  "what is written anew says the same");
  fuzz::require(objection_to_git_config(written, "/w/.git/modules/m") == objection,
                "the same is objected to");
}

const fuzz::registered target("git_config", run);

}  // namespace
