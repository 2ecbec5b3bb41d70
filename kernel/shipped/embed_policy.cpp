// embed_policy POLICY.YAML OUT.CPP: the data behind shipped_policy.hpp. Runs while ccbox is built; a policy
// that cannot be parsed ends the build.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "shipped_policy.hpp"

// This program has none.
const std::string_view ccbox::shipped_text, ccbox::shipped_table;

namespace {

// Octal escapes of three digits end by themselves; a literal a line keeps lines short.
void write_literal(std::ofstream& out, const char* name, std::string_view bytes) {
  out << "const std::string_view " << name << "(";
  for (std::size_t at = 0; at < bytes.size(); at += 80) {
    out << "\n    \"";
    for (const char c : bytes.substr(at, 80)) {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\%03o", static_cast<unsigned char>(c));
      const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
      out << (plain ? std::string(1, c) : escaped);
    }
    out << '"';
  }
  out << ",\n    " << bytes.size() << ");\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto config = ccbox::parse_policy_config(text, "");
  if (!config) {
    std::fprintf(stderr, "%s%s\n", argv[1], config.error().what.c_str());
    return 1;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << "#include \"shipped_policy.hpp\"\n\nnamespace ccbox {\n\n";
  write_literal(out, "shipped_text", text);
  write_literal(out, "shipped_table", ccbox::to_table(*config));
  out << "\n}  // namespace ccbox\n";
  return out.flush() ? 0 : 1;
}
