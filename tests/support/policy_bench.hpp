// A host to compile policies for: a home with secrets and a work directory below a fresh directory, and the
// shipped policy file.
#pragma once

#include <string>
#include <vector>

#include "policy.hpp"
#include "support/temporary_directory.hpp"

namespace ccbox::test {

const policy_config& shipped_policy();

struct policy_bench {
  policy_bench();

  temporary_directory dir;
  std::string home;  // dir/home, with .ssh/id and .aws/credentials
  std::string work;  // dir/home/work
  host_facts host;   // an unprivileged caller on Linux
  policy_config config = shipped_policy();
  sandbox_spec spec;  // mounts `work`

  std::string write(std::string_view below_work, std::string_view bytes = "x") const;
  void mount(const std::string& host_path, bool read_only = false, const std::string& guest_path = {});

  result<policy> try_compile() const { return compile_policy(spec, host, config); }
  policy compile() const;  // fails the test when it is refused
  error refusal() const;   // fails the test when it is not
};

// The rules of a kind whose path (below `directory`, if it lies there) is `path`.
std::vector<rule> rules_for(const policy& p, rule_kind kind, std::string_view path);
bool has_rule(const policy& p, rule_kind kind, std::string_view path);
bool warns(const policy& p, std::string_view text);
bool denies_writing(const policy& p, const std::string& path);  // what is there, and anything new
bool has_name_rule(const policy& p, std::string_view pattern, std::string_view root);

}  // namespace ccbox::test
