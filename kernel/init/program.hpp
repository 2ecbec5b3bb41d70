// Replacing this process by a program found the way execvp(3) finds one, in the PATH of the program's own
// environment.
#pragma once

namespace ccbox::init {

// Returns only if it failed: the errno to report. ENOENT: nowhere found (exit code 127); anything else:
// found, or searched for, but not executable (126). A text file without #! is run by /bin/sh; a binary of
// another kind is ENOEXEC.
int execute_program(char* const argv[], char* const env[]);

}  // namespace ccbox::init
