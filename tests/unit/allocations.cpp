#include "allocations.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t count = 0;

}  // namespace

std::size_t allocations_of_this_thread() {
  return count;
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size != 0 ? size : 1);
}

void* operator new(std::size_t size) {
  if (void* out = operator new(size, std::nothrow)) return out;
  throw std::bad_alloc();
}

void operator delete(void* at) noexcept {
  std::free(at);
}

void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
