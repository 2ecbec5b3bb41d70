#include "manifest.hpp"

#include <algorithm>

#include "fuzz/target.hpp"

namespace {

// A manifest may name directories, which are then read: none that exists here.
void run(std::string_view text) {
  using ccbox::error_code;
  if (text.find("directories") != text.npos && text.find("/nonexistent") == text.npos) return;
  const auto manifest = ccbox::parse_manifest(text, "/nonexistent/plugins.yaml", "/nonexistent/plugins");
  if (!manifest) {
    fuzz::require(manifest.error().what.find("/nonexistent/plugins.yaml") != std::string::npos,
                  "the error names the file");
    return fuzz::require_good_error(manifest.error(), {error_code::invalid_argument, error_code::too_large});
  }
  std::vector<std::string> paths;
  for (const auto& entry : manifest->plugins) {
    fuzz::require(entry.path.starts_with('/'), "a plugin's path is absolute");
    fuzz::require(entry.path.find('\0') == std::string::npos, "a plugin's path has no NUL byte");
    fuzz::require(entry.where.starts_with("/nonexistent/plugins.yaml:"), "an entry knows where it stands");
    if (entry.sha256) {
      fuzz::require(entry.sha256->size() == 64, "a digest has 64 digits");
      fuzz::require(entry.sha256->find_first_not_of("0123456789abcdef") == std::string::npos,
                    "in lower case");
    }
    paths.push_back(entry.path);
  }
  std::sort(paths.begin(), paths.end());
  fuzz::require(std::adjacent_find(paths.begin(), paths.end()) == paths.end(), "no plugin is listed twice");
}

const fuzz::registered target("manifest", run);

}  // namespace
