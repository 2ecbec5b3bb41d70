#include "host.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/temporary_directory.hpp"

using namespace ccbox;

namespace {

// One variable of this process's environment, as it was at the end.
class scoped_variable {
 public:
  scoped_variable(const char* name, const char* value) : name_(name) {
    if (const char* before = ::getenv(name)) before_ = before, had_ = true;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~scoped_variable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

}  // namespace

TEST_CASE("the caller's ids, environment and directory are gathered") {
  const scoped_variable variable("CCBOX_HOST_TEST", "a=b");
  const auto facts = gather_host_facts();
  CHECK(facts.uid == ::geteuid());
  CHECK(facts.gid == ::getegid());
  CHECK(facts.environment.at("CCBOX_HOST_TEST") == "a=b");
  CHECK(facts.current_directory == std::filesystem::current_path());
  CHECK(facts.platform == host_platform::linux_like);
}

TEST_CASE("the home is that of the environment, and the account's own is guarded besides") {
  const scoped_variable home("HOME", "//somewhere/./else/");
  const auto facts = gather_host_facts();
  CHECK(facts.home == "/somewhere/else");
  if (::geteuid() == 0)
    CHECK(std::find(facts.other_homes.begin(), facts.other_homes.end(), "/root") != facts.other_homes.end());
  else
    CHECK(facts.other_homes.size() == 1);
}

TEST_CASE("a HOME that is missing, relative or the root falls back to the user database") {
  for (const char* value : {static_cast<const char*>(nullptr), "", "relative", "/"}) {
    const scoped_variable home("HOME", value);
    const auto facts = gather_host_facts();
    CHECK(facts.home.starts_with('/'));
    CHECK(facts.home.size() > 1);
  }
}

TEST_CASE("a deleted current directory is no directory") {
  const auto before = std::filesystem::current_path();
  {
    const test::temporary_directory dir;
    std::filesystem::current_path(dir.path());
  }
  CHECK(gather_host_facts().current_directory.empty());
  std::filesystem::current_path(before);
}
