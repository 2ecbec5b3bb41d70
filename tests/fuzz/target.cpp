#include "target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace fuzz {

std::vector<target>& all_targets() {
  static std::vector<target> targets;
  return targets;
}

void require(bool holds, std::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

void require_good_error(const ccbox::error& e, std::initializer_list<ccbox::error_code> codes) {
  require(std::find(codes.begin(), codes.end(), e.code) != codes.end(), "the error has an expected code");
  require(!e.what.empty(), "an error says what is wrong");
  for (const auto& text : {e.what, e.hint}) {
    if (ccbox::printable(text) == text) continue;
    require(false, "an error is one printable line: " + ccbox::quoted(text));
  }
}

}  // namespace fuzz
