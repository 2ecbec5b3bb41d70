#include "exported_symbols.hpp"

#include <algorithm>

#include "fuzz/target.hpp"

namespace {

void check(const ccbox::result<std::vector<std::string>>& symbols, std::string_view elf) {
  using ccbox::error_code;
  if (!symbols) {
    fuzz::require(symbols.error().what.find("plugin.so") != std::string::npos, "the error names the file");
    return fuzz::require_good_error(symbols.error(), {error_code::invalid_argument, error_code::too_large});
  }
  fuzz::require(elf.starts_with("\x7f"
                                "ELF"),
                "only an ELF object has symbols");
  fuzz::require(std::is_sorted(symbols->begin(), symbols->end()), "the names are sorted");
  for (const auto& name : *symbols)
    fuzz::require(elf.find(name + '\0') != elf.npos, "a name stands in the file, with its terminator");
}

void run(std::string_view elf) {
  check(ccbox::exported_symbols(elf, "plugin.so"), elf);
  check(ccbox::imported_symbols(elf, "plugin.so"), elf);
}

const fuzz::registered target("exported_symbols", run);

}  // namespace
