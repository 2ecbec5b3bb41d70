// `ccbox-init --janitor`: outlives a process that owns control groups, and removes those it left behind.
//
// It reads messages from standard input (a SOCK_SEQPACKET socket whose other end only the owner holds), each
// one letter and a directory: '+' remember it, '-' forget it, 'x' end and forget it. When the owner is gone,
// whatever the reason, everything remembered is ended, and then the janitor itself.
#pragma once

namespace ccbox::init {

int run_janitor();

}  // namespace ccbox::init
