// The program file that this process runs, as something an enclosure could attack.
//
// A command can make the kernel open it (a script that begins with #!/proc/self/exe) and so get at the file
// through the mount that the launcher used, past every read-only view of it. So it must not be writable
// there.
#pragma once

namespace ccbox::init {

// Returns if the executable can never be written through /proc/self/exe: it is a sealed memfd, lies on a
// read-only mount, or belongs to somebody else and is not writable for us. Otherwise starts a sealed copy of
// it in this process, with the same command line. Ends the process if that fails.
void ensure_sealed_executable(char** argv);

}  // namespace ccbox::init
