// Absolute paths as bytes: normal form, ancestry, and how they are shown to people. Pure text, no file
// system.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ccbox::bubblewrap {

// `//`, `.` and a trailing `/` removed. Nothing if it is relative, has a `..` component or a NUL.
std::optional<std::string> normal_path(std::string_view path);

// All of the following take normal paths.
bool covers(std::string_view root, std::string_view path);  // path is root or below it
std::string parent(std::string_view path);                  // of "/": "/"
std::size_t depth(std::string_view path);                   // of "/": 0
// `path`, which `from` covers, as seen when `from` is found at `to`.
std::string rebase(std::string_view path, std::string_view from, std::string_view to);

// In single quotes, everything but printable ASCII escaped: safe in messages, logs and JSON whatever the
// bytes.
std::string shown(std::string_view path);

}  // namespace ccbox::bubblewrap
