// Two sides that race inside an enclosure: one changes what the other's call is about, as fast as it can.
//
// Begins as table.hpp does: `ready`, then `go`. In the working directory `.env` and what lies in `.git/hooks`
// must never come to be. One line is printed at the end:
//   escapes E done D refused R other O
// E: how often such a name was there, or had been written to; D, R, O: how the calls of the racing side
// ended, with 0, EACCES or another errno. `other` counts no error that the race itself explains (ENOENT and
// the like).
#pragma once

#include <string>

namespace attempt {

// 0; usage_error: no such race.
int run_race(const std::string& name, unsigned long iterations);

}  // namespace attempt
