#include "option_origins.hpp"

#include <string_view>
#include <utility>

namespace ccbox {

namespace {

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

}  // namespace

void option_origins::add(std::string key, std::string option, std::string typed) {
  origins_[std::move(key)] = {std::move(option), std::move(typed)};
}

error option_origins::translated(error e) const {
  for (const auto& [key, from] : origins_) {
    std::string_view rest = e.what;
    if (!rest.starts_with(key)) continue;
    rest.remove_prefix(key.size());
    for (const std::string_view part : {".hostPath", ".guestPath"})
      if (rest.starts_with(part)) rest.remove_prefix(part.size());
    if (!rest.starts_with(": ")) continue;
    rest.remove_prefix(2);
    const std::string typed = quoted(from.typed);
    // Often the value is what the sentence begins with.
    e.what = from.option + " " + (rest.starts_with(typed) ? "" : typed + ": ") + std::string(rest);
    replace(e.hint, "leave the key out", "leave the option out");
    replace(e.hint, "one of bindMounts", "what --bind, --ro or --mount names");
    return e;
  }
  return e;
}

}  // namespace ccbox
