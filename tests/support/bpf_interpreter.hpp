// Runs a classic BPF program over a seccomp_data, as the kernel would, so that a filter can be judged for
// architectures and kernels that are not at hand. Knows the instructions that seccomp(2) accepts.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace ccbox::test {

struct bpf_verdict {
  std::uint32_t action;  // SECCOMP_RET_* | data
  bool read_arguments;   // false: the kernel can cache the answer for this number and architecture
};

// Throws std::invalid_argument for a program that the kernel would not accept.
class bpf_program {
 public:
  explicit bpf_program(std::vector<sock_filter> code);
  static bpf_program from_bytes(std::string_view bytes);

  bpf_verdict run(const seccomp_data& data) const;
  std::size_t size() const { return code_.size(); }

 private:
  std::vector<sock_filter> code_;
};

}  // namespace ccbox::test
