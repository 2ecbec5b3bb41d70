#include "manifest.hpp"

#include <algorithm>
#include <filesystem>

#include "shipped_config.hpp"
#include "yaml_document.hpp"

namespace ccbox {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t most_priority = 1'000'000;

// Hands the first error of a chain of reads out of the parser; never leaves this file.
struct refused {
  error reason;
};

template <class T>
T must(result<T> value) {
  if (!value) throw refused{value.error()};
  return std::move(*value);
}

void must(result<void> value) {
  if (!value) throw refused{value.error()};
}

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

class manifest_reader {
 public:
  manifest_reader(const std::string& file, const std::string& plugin_directory)
      : plugin_directory_(plugin_directory) {
    std::error_code gone;  // a current directory that was removed
    directory_ = fs::absolute(file, gone).parent_path();
    out_.file = file;
  }

  manifest read(const yaml_value& root) {
    must(root.require_keys({"plugins", "directories"}));
    for (const auto& item : must(root["plugins"].items()))
      add(item);
    for (const auto& item : must(root["directories"].items()))
      add_directory(item);
    return std::move(out_);
  }

 private:
  std::string resolve(const std::string& path) const {
    if (path.find('/') != std::string::npos) return (directory_ / path).lexically_normal().string();
    return in_plugin_directory(path, plugin_directory_);
  }

  std::string text(const yaml_value& item, std::string_view key) const {
    const auto value = item[key];
    const auto found = must(value.as_string());
    if (found.empty()) throw refused{value.error_here(std::string(key) + " is empty")};
    return found;
  }

  void add(const yaml_value& item) {
    must(item.require_keys({"path", "enabled", "priority", "required", "on_request", "sha256", "options"}));
    if (!item.has("path"))
      throw refused{
          item.error_here("a plugin without path", "path: the name of a file in the plugin directory")};
    manifest_entry entry;
    entry.where = item.where();
    entry.path = resolve(text(item, "path"));
    if (const auto* other = find(entry.path))
      throw refused{item["path"].error_here("plugin " + ccbox::quoted(entry.path) +
                                            " is listed twice, first at " + other->where)};
    if (item.has("enabled")) entry.enabled = must(item["enabled"].as_bool());
    if (item.has("required")) entry.required = must(item["required"].as_bool());
    if (item.has("on_request")) entry.on_request = must(item["on_request"].as_bool());
    if (item.has("priority")) {
      const auto value = must(item["priority"].as_integer());
      if (value < -most_priority || value > most_priority)
        throw refused{item["priority"].error_here("priority is not from -1000000 to 1000000")};
      entry.priority = static_cast<int>(value);
    }
    if (item.has("sha256")) entry.sha256 = digest(item);
    for (const auto& [key, value] : must(item["options"].members()))
      entry.options.emplace_back(key, must(value.as_string()));
    out_.plugins.push_back(std::move(entry));
  }

  std::string digest(const yaml_value& item) const {
    auto value = text(item, "sha256");
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
    if (value.size() != 64 || !is_hexadecimal(value))
      throw refused{
          item["sha256"].error_here("sha256 is not 64 hexadecimal digits", "`sha256sum FILE` prints them")};
    return value;
  }

  // A directory that is not there is one that nothing was dropped into.
  void add_directory(const yaml_value& item) {
    const auto name = must(item.as_string());
    if (name.empty()) throw refused{item.error_here("a directory without name")};
    const auto path = (directory_ / name).lexically_normal();
    out_.directories.push_back(path.string());
    std::error_code problem;
    std::vector<std::string> found;
    fs::directory_iterator entries(path, problem);
    if (problem == std::errc::no_such_file_or_directory) return;
    for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
      const auto file = entries->path();
      if (file.extension() == ".so" && !file.filename().string().starts_with('.'))
        found.push_back(file.string());
    }
    if (problem)
      throw refused{item.error_here("directory " + ccbox::quoted(path.string()) + ": " + problem.message())};
    std::sort(found.begin(), found.end());
    for (auto& file : found) {
      if (find(file)) continue;  // an entry of its own says more, also that it is not enabled
      manifest_entry entry;
      entry.where = item.where();
      entry.path = std::move(file);
      out_.plugins.push_back(std::move(entry));
    }
  }

  const manifest_entry* find(const std::string& path) const {
    for (const auto& entry : out_.plugins)
      if (entry.path == path) return &entry;
    return nullptr;
  }

  fs::path directory_;
  std::string plugin_directory_;
  manifest out_;
};

result<manifest> read_file(const std::string& path, const std::string& plugin_directory) {
  const auto text = read_yaml_file(path);
  if (!text) return text.error();
  if (auto shipped = shipped_manifest(*text, path, plugin_directory)) return std::move(*shipped);
  return parse_manifest(*text, path, plugin_directory);
}

}  // namespace

std::string in_plugin_directory(const std::string& name, const std::string& plugin_directory) {
  const auto file = fs::path(name).extension() == ".so" ? name : name + ".so";
  return (fs::path(plugin_directory) / file).string();
}

result<manifest> load_manifest(const std::string& path, const std::string& plugin_directory) {
  auto read = read_file(path, plugin_directory);
  if (!read && read.error().code == error_code::not_found) {
    auto missing = read.error();
    missing.hint = "the manifest says which plugins to load; ccbox is installed with one";
    return missing;
  }
  return read;
}

result<manifest> parse_manifest(std::string_view text, const std::string& name,
                                const std::string& plugin_directory) {
  const auto root = load_yaml_text(text, name);
  if (!root) return root.error();
  try {
    return manifest_reader(name, plugin_directory).read(*root);
  } catch (const refused& r) {
    return r.reason;
  }
}

}  // namespace ccbox
