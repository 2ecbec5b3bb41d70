#include "exported_symbols.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ccbox {
namespace {

// The `index`th T of a table, or nothing if any byte of it lies outside the file.
template <class T>
std::optional<T> entry_at(std::string_view bytes, std::uint64_t table, std::uint64_t index,
                          std::uint64_t stride) {
  std::uint64_t step = 0, offset = 0, end = 0;
  if (__builtin_mul_overflow(index, stride, &step) || __builtin_add_overflow(table, step, &offset) ||
      __builtin_add_overflow(offset, sizeof(T), &end) || end > bytes.size())
    return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::optional<std::string_view> range(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(offset, size, &end) || end > bytes.size()) return std::nullopt;
  return bytes.substr(offset, size);
}

std::optional<std::string> string_at(std::string_view strings, std::uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const auto end = strings.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(strings.substr(offset, end - offset));
}

bool is_exported(const Elf64_Sym& symbol) {
  const int binding = ELF64_ST_BIND(symbol.st_info);
  const int visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && binding != STB_LOCAL &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

bool is_imported(const Elf64_Sym& symbol) {
  return symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
}

// What is mapped but not there would raise SIGBUS at its first use, long after the load succeeded.
bool segments_inside(std::string_view elf, const Elf64_Ehdr& header) {
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = entry_at<Elf64_Phdr>(elf, header.e_phoff, i, header.e_phentsize);
    if (!segment) return false;
    if (segment->p_type == PT_LOAD && !range(elf, segment->p_offset, segment->p_filesz)) return false;
  }
  return true;
}

constexpr unsigned char host_byte_order =
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

result<std::vector<std::string>> select_symbols(std::string_view elf, const std::string& name,
                                                bool (*selects)(const Elf64_Sym&)) {
  const auto malformed = [&](std::string_view what) {
    return error{error_code::invalid_argument, "plugin " + quoted(name) + " " + std::string(what),
                 "a plugin is a shared object built for this machine"};
  };
  const auto header = entry_at<Elf64_Ehdr>(elf, 0, 0, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return malformed("is not an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != host_byte_order)
    return malformed("is built for another kind of machine");
  if (header->e_type != ET_DYN) return malformed("is an ELF file but not a shared object");
  if (!segments_inside(elf, *header)) return malformed("is cut short: its segments lie outside the file");
  if (header->e_shentsize < sizeof(Elf64_Shdr)) return malformed("has no section headers");

  std::vector<std::string> symbols;
  bool found_table = false;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = entry_at<Elf64_Shdr>(elf, header->e_shoff, i, header->e_shentsize);
    if (!section) return malformed("is cut short: its section headers lie outside the file");
    if (section->sh_type != SHT_DYNSYM) continue;
    found_table = true;
    if (section->sh_entsize < sizeof(Elf64_Sym)) return malformed("has a malformed symbol table");
    const auto names = entry_at<Elf64_Shdr>(elf, header->e_shoff, section->sh_link, header->e_shentsize);
    const auto strings = names ? range(elf, names->sh_offset, names->sh_size) : std::nullopt;
    if (!strings || !range(elf, section->sh_offset, section->sh_size))
      return malformed("is cut short: its symbol table lies outside the file");
    for (std::uint64_t s = 0; s < section->sh_size / section->sh_entsize; ++s) {
      const auto symbol = entry_at<Elf64_Sym>(elf, section->sh_offset, s, section->sh_entsize);
      if (!symbol) return malformed("has a malformed symbol table");
      if (!selects(*symbol)) continue;
      auto text = string_at(*strings, symbol->st_name);
      if (!text) return malformed("has a symbol whose name lies outside the string table");
      symbols.push_back(std::move(*text));
    }
  }
  if (!found_table) return malformed("has no dynamic symbol table");
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

}  // namespace

result<std::vector<std::string>> exported_symbols(std::string_view elf, const std::string& name) {
  return select_symbols(elf, name, is_exported);
}

result<std::vector<std::string>> imported_symbols(std::string_view elf, const std::string& name) {
  return select_symbols(elf, name, is_imported);
}

}  // namespace ccbox
