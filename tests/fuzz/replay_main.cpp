// replay TARGET PATH...: every file, also those in a directory, through the target, whole and cut short.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/target.hpp"

namespace {

int fail(const std::string& why) {
  std::fprintf(stderr, "replay: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: replay TARGET PATH...");
  const std::string_view name = argv[1];
  const auto& targets = fuzz::all_targets();
  const auto found =
      std::find_if(targets.begin(), targets.end(), [&](const fuzz::target& t) { return t.name == name; });
  if (found == targets.end()) return fail("no target " + ccbox::quoted(name));

  std::vector<std::filesystem::path> files;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.push_back(argv[i]);
      continue;
    }
    const auto before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
    if (files.size() == before) return fail("no corpus in " + ccbox::quoted(argv[i]));
  }
  std::sort(files.begin(), files.end());
  std::size_t inputs = 0;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return fail("cannot read " + ccbox::quoted(file.string()));
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    // A sanitizer's report or an abort does not say which input it was.
    std::fprintf(stderr, "%s\n", file.filename().c_str());
    constexpr std::size_t most_prefixes = 600;
    const std::size_t stride = 1 + bytes.size() / most_prefixes;
    for (std::size_t length = 0; length < bytes.size(); length += stride, ++inputs) {
      // A copy of its own, so that reading past the end is seen.
      const std::string prefix = bytes.substr(0, length);
      found->run(prefix);
    }
    found->run(bytes);
    ++inputs;
  }
  std::printf("%s: %zu files, %zu inputs\n", argv[1], files.size(), inputs);
  return 0;
}
