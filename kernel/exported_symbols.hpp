// The symbols that an ELF shared object exports and wants, read from its bytes: nothing of it is loaded or
// run.
//
// Every offset of the file is outside input: a malformed table is an error, never a read beyond the bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace ccbox {

// Defined, global or weak, visible symbols of the dynamic symbol table, sorted. Only objects of this
// machine's class and byte order. Names of symbol versions count too: a plugin has none.
result<std::vector<std::string>> exported_symbols(std::string_view elf, const std::string& name);

// The undefined ones, which something else in the process must define. The same errors.
result<std::vector<std::string>> imported_symbols(std::string_view elf, const std::string& name);

}  // namespace ccbox
