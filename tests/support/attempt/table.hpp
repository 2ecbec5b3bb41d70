// Many attempts in one enclosure, each in a directory and a process of its own.
//
// Standard input is the table: DIRECTORY NUL ACTION NUL, again and again. `ready` is printed, then the FIFO
// `go` in the working directory is waited for (who opens it for writing has prepared the directories), then a
// line for each:
//   NUMBER ERRNO WHAT-WAS-OBSERVED
// An ACTION that begins with `sh ` is for the shell, and its ERRNO is 0 or `shell_failed`; any other one is a
// script.
#pragma once

namespace attempt {

constexpr int shell_failed = 1000;

int run_table();

// Says `ready` and waits for `go`. False: there is no such thing.
bool wait_until_prepared();

}  // namespace attempt
