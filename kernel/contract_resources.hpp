// What this process holds open, counted before and after: descriptors, threads, children, memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace ccbox::contract {

struct resources {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t children = 0;       // also those that lost their parent: the check process is their reaper
  std::size_t heap_bytes = 0;     // in use, of every arena
  std::size_t address_bytes = 0;  // mapped
};
resources open_resources();

// Runs `action` a few times to warm up, then 100 times, and throws a violation if anything grew.
void expect_no_growth(const std::string& what, const std::function<void()>& action);

// A violation if `after` has a descriptor, thread or child that `before` has not.
void expect_nothing_left(const std::string& what, const resources& before, const resources& after);

}  // namespace ccbox::contract
