#include "support/bpf_interpreter.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace ccbox::test {
namespace {

bool is_return(const sock_filter& i) {
  return BPF_CLASS(i.code) == BPF_RET;
}

void check(const sock_filter& i, std::size_t at, std::size_t size) {
  const auto require = [at](bool fact, const char* what) {
    if (!fact) throw std::invalid_argument("instruction " + std::to_string(at) + ": " + what);
  };
  switch (i.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      return require(i.k % 4 == 0 && i.k < sizeof(seccomp_data), "load outside of seccomp_data");
    case BPF_ST:
    case BPF_STX:
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
      return require(i.k < BPF_MEMWORDS, "no such memory word");
    case BPF_ALU | BPF_DIV | BPF_K:
      return require(i.k != 0, "division by zero");
    case BPF_ALU | BPF_LSH | BPF_K:
    case BPF_ALU | BPF_RSH | BPF_K:
      return require(i.k < 32, "shift too far");
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_ALU | BPF_NEG:
      return;
    case BPF_JMP | BPF_JA:
      return require(i.k < size - at - 1, "jump out of the program");
    default:
      break;
  }
  const auto operation = BPF_OP(i.code);
  if (BPF_CLASS(i.code) == BPF_JMP) {
    require(operation == BPF_JEQ || operation == BPF_JGT || operation == BPF_JGE || operation == BPF_JSET,
            "unknown jump");
    return require(at + 1 + i.jt < size && at + 1 + i.jf < size, "jump out of the program");
  }
  require(BPF_CLASS(i.code) == BPF_ALU && operation <= BPF_XOR && operation != BPF_MOD,
          "unknown instruction");
}

std::uint32_t arithmetic(std::uint16_t operation, std::uint32_t a, std::uint32_t b) {
  switch (operation) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b == 0 ? 0 : a / b;
    case BPF_OR:
      return a | b;
    case BPF_AND:
      return a & b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b & 31);
    case BPF_RSH:
      return a >> (b & 31);
    case BPF_NEG:
      return 0 - a;
    default:
      throw std::logic_error("arithmetic");
  }
}

bool compare(std::uint16_t operation, std::uint32_t a, std::uint32_t b) {
  switch (operation) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JSET:
      return (a & b) != 0;
    default:
      throw std::logic_error("compare");
  }
}

}  // namespace

bpf_program::bpf_program(std::vector<sock_filter> code) : code_(std::move(code)) {
  if (code_.empty() || code_.size() > BPF_MAXINSNS)
    throw std::invalid_argument("no or too many instructions");
  for (std::size_t i = 0; i < code_.size(); ++i)
    check(code_[i], i, code_.size());
  if (!is_return(code_.back())) throw std::invalid_argument("the last instruction does not return");
}

bpf_program bpf_program::from_bytes(std::string_view bytes) {
  if (bytes.size() % sizeof(sock_filter) != 0) throw std::invalid_argument("no whole number of instructions");
  std::vector<sock_filter> code(bytes.size() / sizeof(sock_filter));
  std::memcpy(code.data(), bytes.data(), bytes.size());
  return bpf_program(std::move(code));
}

bpf_verdict bpf_program::run(const seccomp_data& data) const {
  std::uint32_t a = 0, x = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory{};
  bool read_arguments = false;
  for (std::size_t at = 0;; ++at) {
    const auto& i = code_[at];
    const std::uint32_t operand = BPF_SRC(i.code) == BPF_X ? x : i.k;
    switch (BPF_CLASS(i.code)) {
      case BPF_LD:
        if (BPF_MODE(i.code) == BPF_ABS) {
          std::memcpy(&a, reinterpret_cast<const char*>(&data) + i.k, sizeof a);
          read_arguments = read_arguments || i.k >= offsetof(seccomp_data, instruction_pointer);
        } else {
          a = BPF_MODE(i.code) == BPF_MEM   ? memory[i.k]
              : BPF_MODE(i.code) == BPF_LEN ? sizeof(seccomp_data)
                                            : i.k;
        }
        break;
      case BPF_LDX:
        x = BPF_MODE(i.code) == BPF_MEM   ? memory[i.k]
            : BPF_MODE(i.code) == BPF_LEN ? sizeof(seccomp_data)
                                          : i.k;
        break;
      case BPF_ST:
        memory[i.k] = a;
        break;
      case BPF_STX:
        memory[i.k] = x;
        break;
      case BPF_ALU:
        a = arithmetic(BPF_OP(i.code), a, operand);
        break;
      case BPF_JMP:
        if (BPF_OP(i.code) == BPF_JA)
          at += i.k;
        else
          at += compare(BPF_OP(i.code), a, operand) ? i.jt : i.jf;
        break;
      case BPF_RET:
        return {BPF_RVAL(i.code) == BPF_A ? a : i.k, read_arguments};
      case BPF_MISC:
        (BPF_MISCOP(i.code) == BPF_TAX ? x : a) = BPF_MISCOP(i.code) == BPF_TAX ? a : x;
        break;
    }
  }
}

}  // namespace ccbox::test
