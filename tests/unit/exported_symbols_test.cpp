#include "exported_symbols.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

using namespace ccbox;

namespace {

// A shared object of one section of names and one of symbols; the layout is header, sections, symbols, names.
struct small_elf {
  struct file {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2];
    Elf64_Sym symbols[5];
    char names[40];
  } f;

  small_elf() {
    std::memset(&f, 0, sizeof f);
    std::memcpy(f.header.e_ident, ELFMAG, SELFMAG);
    f.header.e_ident[EI_CLASS] = ELFCLASS64;
    f.header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    f.header.e_type = ET_DYN;
    f.header.e_shoff = offsetof(file, sections);
    f.header.e_shentsize = sizeof(Elf64_Shdr);
    f.header.e_shnum = 2;
    f.sections[0].sh_type = SHT_DYNSYM;
    f.sections[0].sh_offset = offsetof(file, symbols);
    f.sections[0].sh_size = sizeof f.symbols;
    f.sections[0].sh_entsize = sizeof(Elf64_Sym);
    f.sections[0].sh_link = 1;
    f.sections[1].sh_type = SHT_STRTAB;
    f.sections[1].sh_offset = offsetof(file, names);
    f.sections[1].sh_size = sizeof f.names;
    std::memcpy(f.names, "\0zulu\0alpha\0hidden\0local\0needed", 32);
    set(0, 1, STB_GLOBAL, STV_DEFAULT, 7);
    set(1, 6, STB_WEAK, STV_PROTECTED, 7);
    set(2, 12, STB_GLOBAL, STV_HIDDEN, 7);
    set(3, 19, STB_LOCAL, STV_DEFAULT, 7);
    set(4, 25, STB_GLOBAL, STV_DEFAULT, SHN_UNDEF);
  }
  void set(int i, Elf64_Word name, unsigned char binding, unsigned char visibility, Elf64_Section section) {
    f.symbols[i].st_name = name;
    f.symbols[i].st_info = ELF64_ST_INFO(binding, STT_FUNC);
    f.symbols[i].st_other = visibility;
    f.symbols[i].st_shndx = section;
  }
  std::string bytes() const { return {reinterpret_cast<const char*>(&f), sizeof f}; }
};

}  // namespace

TEST_CASE("exported symbols are the defined, visible ones that are not local") {
  const auto symbols = exported_symbols(small_elf().bytes(), "x.so");
  REQUIRE(symbols.has_value());
  CHECK(*symbols == std::vector<std::string>{"alpha", "zulu"});
}

TEST_CASE("a file that is no shared object of this machine is refused with its kind") {
  CHECK(exported_symbols("", "x.so").error().what == "plugin 'x.so' is not an ELF file");
  CHECK(exported_symbols("#!/bin/sh\n", "x.so").error().what == "plugin 'x.so' is not an ELF file");
  small_elf program;
  program.f.header.e_type = ET_EXEC;
  CHECK(exported_symbols(program.bytes(), "x.so").error().what ==
        "plugin 'x.so' is an ELF file but not a shared object");
  small_elf narrow;
  narrow.f.header.e_ident[EI_CLASS] = ELFCLASS32;
  CHECK(exported_symbols(narrow.bytes(), "x.so").error().what ==
        "plugin 'x.so' is built for another kind of machine");
  small_elf stripped;
  stripped.f.sections[0].sh_type = SHT_PROGBITS;
  CHECK(exported_symbols(stripped.bytes(), "x.so").error().what ==
        "plugin 'x.so' has no dynamic symbol table");
}

TEST_CASE("a shared object cut anywhere before its end is an error, never a read beyond it") {
  const auto whole = small_elf().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    // A copy of exactly this size, so that a sanitizer sees one byte too many.
    const std::string cut(whole.data(), length);
    CHECK(exported_symbols(cut, "x.so").has_error());
  }
}

TEST_CASE("offsets and sizes that overflow or point outside are errors") {
  const auto refused = [](auto change) {
    small_elf elf;
    change(elf.f);
    return exported_symbols(elf.bytes(), "x.so").has_error();
  };
  CHECK(refused([](auto& f) { f.header.e_shoff = ~0ull; }));
  CHECK(refused([](auto& f) { f.header.e_shoff = ~0ull - 63; }));
  CHECK(refused([](auto& f) { f.header.e_shnum = 0xffff; }));
  CHECK(refused([](auto& f) { f.header.e_shentsize = 1; }));
  CHECK(refused([](auto& f) { f.sections[0].sh_offset = ~0ull - 7; }));
  CHECK(refused([](auto& f) { f.sections[0].sh_size = ~0ull; }));
  CHECK(refused([](auto& f) { f.sections[0].sh_entsize = 0; }));
  CHECK(refused([](auto& f) { f.sections[0].sh_link = 9; }));
  CHECK(refused([](auto& f) { f.sections[1].sh_size = ~0ull; }));
  CHECK(refused([](auto& f) { f.symbols[0].st_name = 4000; }));
  CHECK(refused([](auto& f) { std::memset(f.names, 'x', sizeof f.names); }));
}

TEST_CASE("imported symbols are the undefined ones that are not local") {
  small_elf elf;
  CHECK(*imported_symbols(elf.bytes(), "x.so") == std::vector<std::string>{"needed"});
  elf.set(3, 19, STB_LOCAL, STV_DEFAULT, SHN_UNDEF);
  CHECK(*imported_symbols(elf.bytes(), "x.so") == std::vector<std::string>{"needed"});
  CHECK(imported_symbols("text", "x.so").has_error());
}

TEST_CASE("a segment that lies outside the file is refused: it would be mapped and not there") {
  struct with_segment {
    small_elf::file elf;
    Elf64_Phdr segment;
  };
  const auto outcome = [](std::uint64_t offset, std::uint64_t size, unsigned type = PT_LOAD) {
    with_segment f;
    std::memset(static_cast<void*>(&f), 0, sizeof f);
    f.elf = small_elf().f;
    f.elf.header.e_phoff = offsetof(with_segment, segment);
    f.elf.header.e_phentsize = sizeof(Elf64_Phdr);
    f.elf.header.e_phnum = 1;
    f.segment.p_type = type;
    f.segment.p_offset = offset;
    f.segment.p_filesz = size;
    const auto symbols = exported_symbols({reinterpret_cast<const char*>(&f), sizeof f}, "x.so");
    return symbols ? "accepted" : symbols.error().what;
  };
  const std::string refused = "plugin 'x.so' is cut short: its segments lie outside the file";
  CHECK(outcome(0, sizeof(with_segment)) == "accepted");
  CHECK(outcome(0, sizeof(with_segment) + 1) == refused);
  CHECK(outcome(8, ~0ull) == refused);
  CHECK(outcome(~0ull, 1) == refused);
  CHECK(outcome(~0ull, 1, PT_NOTE) == "accepted");
  small_elf elf;
  elf.f.header.e_phnum = 1;
  elf.f.header.e_phoff = ~0ull;
  CHECK(exported_symbols(elf.bytes(), "x.so").error().what == refused);
}
