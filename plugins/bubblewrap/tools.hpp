// The programs that the backend needs of the host.
#pragma once

#include <string>
#include <string_view>

namespace ccbox::bubblewrap {

// Looked for where only root can put programs, never in the caller's PATH.
// `configured`: the manifest's own choice, an absolute path; empty: search. Empty answer: not there.
std::string find_tool(std::string_view name, const std::string& configured);

}  // namespace ccbox::bubblewrap
