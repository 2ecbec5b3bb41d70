// Failure paths are driven by failing the Nth call through kernel/os.hpp.
#pragma once

#include <ostream>
#include <set>
#include <string>

namespace ccbox::test {

// While it lives, call number `n` (from 1) through the door fails with `error_number`; 0: none fails, calls
// are counted.
class failing_call {
 public:
  explicit failing_call(int n, int error_number = 5 /* EIO */);
  ~failing_call();
  failing_call(const failing_call&) = delete;
  failing_call& operator=(const failing_call&) = delete;
  int calls() const;
  bool reached() const;  // the call that fails was made
};

// What this process has open and which children it has (zombies too): equal before and after, nothing leaked.
struct footprint {
  std::set<std::string> descriptors;  // number → target
  std::set<int> children;
  bool operator==(const footprint&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const footprint& f);
};
footprint take_footprint();

}  // namespace ccbox::test
