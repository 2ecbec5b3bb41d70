#include "bare_bwrap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace ccbox::bench {

std::vector<std::string> bare_bwrap(const plan& how) {
  // With name rules it is the broker that starts bwrap.
  const auto options = std::find(how.argv.begin(), how.argv.end(), "--args");
  if (options == how.argv.begin() || options == how.argv.end()) {
    std::fprintf(stderr, "bench: the plan starts no bwrap\n");
    std::exit(1);
  }
  std::vector<std::string> argv = {*std::prev(options)}, words;
  for (const auto& file : how.files)
    if (file.label == "bwrap-args")
      for (std::size_t at = 0; at < file.bytes.size(); at += words.back().size() + 1)
        words.emplace_back(file.bytes.c_str() + at);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--ro-bind-data") {
      const int empty = ::memfd_create("ccbox-bench", 0);
      argv.insert(argv.end(), {words[i], std::to_string(empty)});
      ++i;
    } else if (words[i] == "--bind-fd" || words[i] == "--ro-bind-fd") {
      const int number = std::atoi(words.at(i + 1).c_str());
      for (const auto& path : how.paths)
        if (path.number == number)
          argv.insert(argv.end(), {words[i] == "--bind-fd" ? "--bind" : "--ro-bind", path.host_path});
      ++i;
    } else {
      argv.push_back(words[i]);
    }
  }
  argv.push_back("--");
  return argv;
}

}  // namespace ccbox::bench
