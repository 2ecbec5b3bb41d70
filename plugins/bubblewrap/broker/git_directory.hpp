// Git directories under any name: git takes a directory with HEAD, `objects` and `refs` for a repository,
// obeys its `config` and runs its `hooks`. Where both are, or come to be, those two are guarded, HEAD or not.
#pragma once

#include "broker/desk.hpp"

namespace ccbox::bubblewrap {

// How a name comes into being.
enum class making { file, directory, other };

// Opens the parent of a place that is known by its text. Done, too, if there is no such directory any more.
outcome hold_parent(place& in);

// Why the name may not be made there or written to, or null. For places that no glob is about.
const name_rule* guarded_by_git(const desk& at, const place& in, making what);

// To be asked before a name is made. Done: go on. If it makes a git directory of `in.parent`, then hooks in
// it are a refusal, and so is configuration that could do harm; other configuration is put in its place anew.
outcome before_git_directory(desk& at, const caller& who, const char* operation, const place& in);

}  // namespace ccbox::bubblewrap
