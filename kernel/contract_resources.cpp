#include "contract_resources.hpp"

#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "contract_subject.hpp"

// The sanitizers' allocators count for themselves; mallinfo2 then sees nothing.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace ccbox::contract {
namespace {

std::size_t entries_of(const char* directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory))
    ++count;
  return count;
}

std::size_t children_of_all_threads() {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (long pid = 0; children >> pid;)
      ++count;
  }
  return count;
}

std::size_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t heap_bytes_in_use() {
  if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
  const auto heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// A leak of 80 bytes an instance, or of one page every other instance, is over these.
constexpr std::size_t heap_tolerance_bytes = 8 * 1024;
constexpr std::size_t address_tolerance_bytes = 256 * 1024;

std::string growth(std::size_t before, std::size_t after, const char* noun) {
  return "left " + std::to_string(after - before) + " more " + noun + " than before";
}

}  // namespace

resources open_resources() {
  resources r;
  r.descriptors = entries_of("/proc/self/fd");
  r.threads = entries_of("/proc/self/task");
  r.children = children_of_all_threads();
  r.heap_bytes = heap_bytes_in_use();
  r.address_bytes = mapped_bytes();
  return r;
}

void expect_nothing_left(const std::string& what, const resources& before, const resources& after) {
  const auto none = [&](std::size_t had, std::size_t has, const char* noun) {
    expect(has <= had, what + " " + growth(had, has, noun));
  };
  none(before.descriptors, after.descriptors, "open descriptors");
  none(before.threads, after.threads, "threads");
  none(before.children, after.children, "child processes");
}

void expect_no_growth(const std::string& what, const std::function<void()>& action) {
  const guarded_memory::give_back thrift;
  // Caches of the allocator, of the standard library and of the plugin fill up first.
  for (int i = 0; i < 10; ++i)
    action();
  const auto before = open_resources();
  for (int i = 0; i < 100; ++i)
    action();
  const auto after = open_resources();
  expect_nothing_left(what, before, after);
  expect(after.heap_bytes <= before.heap_bytes + heap_tolerance_bytes,
         what + " " + growth(before.heap_bytes, after.heap_bytes, "bytes of heap"));
  expect(after.address_bytes <= before.address_bytes + address_tolerance_bytes,
         what + " " + growth(before.address_bytes, after.address_bytes, "mapped bytes"));
}

}  // namespace ccbox::contract
