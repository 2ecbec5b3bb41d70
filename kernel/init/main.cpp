// ccbox-init --channel N: the first process in every enclosure. ccbox-init --janitor: see janitor.hpp.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "channel.hpp"
#include "confinement.hpp"
#include "executable.hpp"
#include "failure.hpp"
#include "janitor.hpp"
#include "protocol.hpp"
#include "supervisor.hpp"

using namespace ccbox::init;

namespace {

int channel_number(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--channel") != 0) fail("usage: ccbox-init --channel N");
  char* end = nullptr;
  const long number = std::strtol(argv[2], &end, 10);
  if (end == argv[2] || *end != '\0' || number < 3 || number > 1 << 20)
    fail("--channel: not a descriptor above 2");
  return static_cast<int>(number);
}

setup_message wait_for_setup(channel& kernel_side) {
  for (;;) {
    pollfd readable{kernel_side.descriptor(), POLLIN, 0};
    if (poll(&readable, 1, -1) < 0) fail("poll", errno);
    frame first;
    switch (kernel_side.receive(first)) {
      case channel::input::nothing:
        continue;
      case channel::input::ended:
        fail("the channel ended before the setup");
      case channel::input::malformed:
        fail("malformed frame");
      case channel::input::complete:
        break;
    }
    auto setup = decode_setup(first.payload);
    if (first.header.type != frame_type::setup || first.header.descriptors != 0 || !setup)
      fail("the first frame is not a valid setup");
    return std::move(*setup);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--janitor") == 0) return run_janitor();
  const int number = channel_number(argc, argv);
  ensure_sealed_executable(number);
  rename_command_line(argc, argv);
  close_all_but(number);
  hide_from_same_user();
  auto signals = block_signals();
  channel kernel_side(number);

  const auto setup = wait_for_setup(kernel_side);
  const bool confined = !(setup.flags & setup_unconfined);
  if (confined) {
    require_first_process();
    forbid_new_privileges();
    drop_capabilities();
    install_filter(setup.filter);
    verify_confinement();
    die_with_launcher();
  } else {
    adopt_orphans();
  }

  kernel_side.send(frame_type::ready, 0,
                   encode(ready_message{protocol_version, static_cast<std::uint32_t>(getpid())}));
  supervisor(kernel_side, std::move(signals), confined).run();
}
