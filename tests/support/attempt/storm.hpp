// The same brokered calls again and again, for tests that look at the broker meanwhile, or end it.
#pragma once

namespace attempt {

// `times` files are created, closed and removed, and `times` creations of `.env` refused; `done` is printed;
// then it waits for `go` as table.hpp does.
int storm(unsigned long times);

// After the first refusal `begun` is printed. Goes on until a call fails in another way than by refusal, and
// says so, and whether `.env` and an ordinary name can still be made: `failed ERRNO then ERRNO ERRNO`. Then
// it waits to be ended.
[[noreturn]] void storm_until_failure();

}  // namespace attempt
