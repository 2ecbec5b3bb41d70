// The text of a small file such as those of /proc. Without streams: their tables of locales would be most of
// this plugin, and every launch loads it.
#pragma once

#include <string>

namespace ccbox::bubblewrap {

// At most 64 KiB of it; empty if it cannot be read.
std::string read_small_file(const char* path);

}  // namespace ccbox::bubblewrap
