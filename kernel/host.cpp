#include "host.hpp"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <optional>

#include "account.hpp"
#include "path_spelling.hpp"
#include "platform.hpp"

extern char** environ;

namespace ccbox {

namespace {

constexpr uid_t first_person = 1000;  // below are accounts of services

std::optional<std::string> account_home(uid_t uid, const std::vector<account>& accounts) {
  for (const auto& a : accounts)
    if (a.uid == uid) return a.home;
  // Not a local account: the name service knows it.
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 << 10);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found && found->pw_dir)
    return std::string(found->pw_dir);
  return std::nullopt;
}

bool is_home(std::string_view path) {
  return path.starts_with('/') && path != "/";
}

}  // namespace

host_facts gather_host_facts() {
  host_facts facts;
  facts.platform = this_platform();
  facts.uid = ::geteuid();
  facts.gid = ::getegid();
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    // The first of two wins, as it does for getenv.
    facts.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  const auto accounts = local_accounts();
  const auto own = account_home(facts.uid, accounts);
  if (const auto home = facts.environment.find("HOME");
      home != facts.environment.end() && is_home(home->second))
    facts.home = normalise_path(home->second);
  else if (own && is_home(*own))
    facts.home = normalise_path(*own);

  const auto add = [&](std::string_view home) {
    if (!is_home(home)) return;
    std::string path = normalise_path(home);
    if (path == facts.home) return;
    if (std::find(facts.other_homes.begin(), facts.other_homes.end(), path) == facts.other_homes.end())
      facts.other_homes.push_back(std::move(path));
  };
  if (own) add(*own);
  if (facts.uid == 0)
    for (const auto& a : accounts)
      if (a.uid >= first_person && a.uid != 65534) add(a.home);

  if (facts.platform == host_platform::linux_like) facts.kernel_mounts = find_kernel_mounts();

  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof directory) && directory[0] == '/') facts.current_directory = directory;
  return facts;
}

bool inside_enclosure() {
  std::ifstream file("/proc/1/comm");
  std::string name;
  return std::getline(file, name) && name == "ccbox-init";
}

}  // namespace ccbox
