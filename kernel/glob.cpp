#include "glob.hpp"

namespace ccbox {

result<glob> compile_glob(std::string_view pattern) {
  std::string_view problem;
  auto compiled = glob::compile(pattern, problem);
  if (compiled) return *std::move(compiled);
  return error{error_code::invalid_argument,
               "glob " + quoted(pattern.substr(0, 200)) + " " + std::string(problem),
               "write a name (`*.key`) or a path below any directory (`**/.git/hooks/*`)"};
}

}  // namespace ccbox
