// Where a run's spec comes from before the options change it: a file, a text, or nothing.
#pragma once

#include <string>

#include "result.hpp"
#include "sandbox_spec.hpp"

namespace ccbox {

// A spec with a random session id and nothing bound.
sandbox_spec fresh_spec();

struct written_spec {
  sandbox_spec spec;
  bool says_mounts = false;  // bindMounts is there, and an empty list of it means that nothing is bound
};
// Strict, but that sessionId, workspaceId and bindMounts may be missing: they are then those of fresh_spec().
// A regular file or a pipe, up to 1 MiB. Errors name the file.
result<written_spec> spec_from_file(const std::string& path);
result<written_spec> spec_from_json(const std::string& text);

}  // namespace ccbox
