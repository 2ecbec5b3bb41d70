// A few system calls in a row, written in one line.
//
// Steps are parted by ` ; `, words by spaces. A step is `[VARIABLE=]CALL ARGUMENT...`; the first that fails
// ends the script. CALL is a system call's name or number, or
//   put FD TEXT         writes the text
//   get FD              what it reads is observed
//   flags FD            F_GETFL without O_NOFOLLOW, and F_GETFD, are observed
//   look PATH           type, mode, owner (yes or no), links and size are observed, or the errno
//   in-child STEP...    the step in a forked child, whose errno counts
// An ARGUMENT is
//   12 017 0x1f -1, names of constants, any of them joined by `|`    a number
//   $NAME               what the step NAME= has returned
//   edge:TEXT cut:TEXT  a string that ends with its page, and one that the page cuts off before its NUL
//   long:N              N times `a`;  long:N/TEXT: then the text
//   deep:N/TEXT         N bytes of `./`, then the text
//   bad                 an address where nothing is
//   how:FLAGS,MODE,RESOLVE    a struct open_how
//   un:PATH             a struct sockaddr_un
//   zero:N              N zero bytes
//   anything else       a string, in which \xNN is a byte and {NAME} a number
#pragma once

#include <string>

namespace attempt {

struct script_result {
  int error = 0;  // of the last step; usage_error: the script makes no sense
  std::string observed;
};

constexpr int usage_error = 200;

script_result run_script(const std::string& script);

}  // namespace attempt
