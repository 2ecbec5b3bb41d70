// embed_config POLICY.YAML EGRESS.YAML PLUGINS.YAML OUT.CPP: the data behind shipped_config.hpp. Runs while
// ccbox is built; a file that cannot be parsed ends the build.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "shipped_config.hpp"
#include "yaml_document.hpp"

// This program has none.
const ccbox::shipped_file ccbox::shipped_policy_file{}, ccbox::shipped_egress_file{},
    ccbox::shipped_manifest_file{};

namespace {

using namespace ccbox;

// Octal escapes of three digits end by themselves; a literal a line keeps lines short.
void write_literal(std::ofstream& out, std::string_view bytes) {
  out << "std::string_view(";
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
  out << ",\n    " << bytes.size() << ")";
}

result<manifest> parse_shipped_manifest(std::string_view text) {
  auto plugins = parse_manifest(text, "", "");
  if (!plugins) return plugins;
  // What is in a directory is found out at run time.
  if (const auto root = load_yaml_text(text, ""); root->has("directories"))
    return (*root)["directories"].error_here("the shipped manifest names no directories");
  for (const auto& entry : plugins->plugins)
    if (entry.path.find('/') != std::string::npos || entry.sha256)
      return error{error_code::invalid_argument,
                   entry.where + ": a shipped entry names a file in the plugin directory, without sha256",
                   {}};
  return plugins;
}

// False after a line about what is wrong.
template <class Parse>
bool embed(std::ofstream& out, const char* name, const char* path, Parse parse) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto parsed = parse(std::string_view(text));
  if (!parsed) {
    std::fprintf(stderr, "%s%s\n", path, parsed.error().what.c_str());
    return false;
  }
  out << "const shipped_file " << name << "{";
  write_literal(out, text);
  out << ",\n  ";
  write_literal(out, to_table(*parsed));
  out << "};\n";
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  std::ofstream out(argv[4], std::ios::binary);
  out << "#include \"shipped_config.hpp\"\n\nnamespace ccbox {\n\n";
  const bool good =
      embed(out, "shipped_policy_file", argv[1], [](auto text) { return parse_policy_config(text, ""); }) &&
      embed(out, "shipped_egress_file", argv[2], [](auto text) { return parse_egress_config(text, ""); }) &&
      embed(out, "shipped_manifest_file", argv[3], parse_shipped_manifest);
  out << "\n}  // namespace ccbox\n";
  return good && out.flush() ? 0 : 1;
}
