#include "account.hpp"

#include <fstream>

namespace ccbox {

std::vector<account> local_accounts() {
  std::vector<account> out;
  std::ifstream file("/etc/passwd");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields;
    for (std::size_t begin = 0;;) {
      const auto end = line.find(':', begin);
      fields.push_back(line.substr(begin, end - begin));
      if (end == std::string::npos) break;
      begin = end + 1;
    }
    if (fields.size() < 7 || fields[2].empty() || fields[2].size() > 10) continue;
    if (fields[2].find_first_not_of("0123456789") != std::string::npos) continue;
    out.push_back({static_cast<uid_t>(std::stoull(fields[2])), fields[5]});
  }
  return out;
}

}  // namespace ccbox
