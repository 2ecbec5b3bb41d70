#include <cstddef>
#include <cstdint>

#include "fuzz/target.hpp"

// libFuzzer's own main calls this; the program is linked with one target.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::all_targets().front().run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
