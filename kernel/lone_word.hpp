// A word without a dot and without a port, such as `git`: hardly ever the host that is meant, more often what
// a stray space left of one. Whoever means one writes its port or its final dot.
#pragma once

#include <string_view>

namespace ccbox {

inline bool is_lone_word(std::string_view pattern) {
  return !pattern.empty() && pattern.find_first_of(".:*[/ ") == pattern.npos;
}

inline constexpr std::string_view lone_word_hint =
    "a host has a dot in its name; where one really has none, write its port or its final dot, as in "
    "`git:443` "
    "or `git.`; this host is 127.0.0.1:PORT";

}  // namespace ccbox
