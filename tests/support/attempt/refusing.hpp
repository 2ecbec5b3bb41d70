// Running a program where system calls are answered by somebody else than the kernel: what older kernels,
// their switches and filters around a process make of them.
#pragma once

namespace attempt {

// `refusing CALL[/INDEX&MASK=VALUE]:ERRNO... -- PROGRAM ARGUMENT...`: a filter answers CALL (a number) with
// ERRNO; with a condition, only where (argument INDEX & MASK) == VALUE. Does not return but with 200: wrong
// usage, or an errno.
int run_refusing(int argc, char** argv);

// `answering CALL VALUE -- PROGRAM ARGUMENT...`: a listener returns VALUE, so there is a listener around the
// program, too. CALL -1: it is never asked. The exit code is the program's.
int run_answering(int argc, char** argv);

}  // namespace attempt
