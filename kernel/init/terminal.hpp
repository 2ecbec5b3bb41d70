// Pseudo-terminals of the enclosure's own devpts.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "../unique_fd.hpp"

namespace ccbox::init {

struct terminal {
  unique_fd master;  // blocking; both ends close on exec
  unique_fd slave;
};

// 0, or the errno that says why not. Never waits, whatever a command has made of /dev.
int open_terminal(std::uint32_t rows, std::uint32_t cols, terminal& into);

// The foreground process group of the terminal that `leader` leads; 0 if there is none. Asks /proc, because a
// descriptor of the terminal kept for this would keep the terminal from hanging up.
pid_t foreground_group(pid_t leader);

}  // namespace ccbox::init
