// The steps by which ccbox-init confines itself, and with itself every command: main.cpp says in which order.
//
// Each either does what its name says or ends the process with a line on standard error (failure.hpp).
#pragma once

#include <string>

#include "../unique_fd.hpp"

namespace ccbox::init {

// What the launcher passes on purpose; -1: not given.
struct inherited_descriptors {
  int channel = -1;
  int floor = -1, broker = -1;
};
// Standard input and output become /dev/null, standard error stays for failure lines; everything else is
// closed.
void close_all_but(const inherited_descriptors& given);
// Not dumpable: nobody of this user can trace it, nor open its memory, descriptors, environment or
// executable.
void hide_from_same_user();
// `ps` shows this whatever argv[0] the launcher used.
void rename_command_line(int argc, char** argv);
// Default dispositions (commands inherit them), everything blocked. Returns a signalfd for SIGCHLD.
unique_fd block_signals();

// Inside an enclosure.
void require_first_process();
void forbid_new_privileges();
void drop_capabilities();  // uid 0 keeps what it has of CHOWN, DAC_OVERRIDE, FOWNER, FSETID
void install_filter(const std::string& instructions);  // struct sock_filter[]
void verify_confinement();
// The kernel kills us, and with us everything inside, when the launcher that made the enclosure dies.
void die_with_launcher();

// Outside of one (backend `none`): orphans of commands come to us, so that none can outlive the session.
void adopt_orphans();

}  // namespace ccbox::init
