// ccbox-init --channel N [--floor F --broker B [--try ORDINARY FORBIDDEN]]: the first process in every
// enclosure. F, B and the two names: see ccbox/floor.hpp. ccbox-init --janitor: see janitor.hpp.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "channel.hpp"
#include "confinement.hpp"
#include "executable.hpp"
#include "failure.hpp"
#include "floor.hpp"
#include "janitor.hpp"
#include "protocol.hpp"
#include "supervisor.hpp"

using namespace ccbox;
using namespace ccbox::init;

namespace {

int descriptor_number(const char* text) {
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < 3 || number > 1 << 20)
    fail("not a descriptor above 2 on the command line");
  return static_cast<int>(number);
}

bool asks_for_trial(int argc, char** argv) {
  return argc == 10 && std::strcmp(argv[7], "--try") == 0;
}

inherited_descriptors inherited(int argc, char** argv) {
  const auto is = [&](int at, const char* word) { return std::strcmp(argv[at], word) == 0; };
  inherited_descriptors found;
  const bool floored = argc == 7 || asks_for_trial(argc, argv);
  if ((argc == 3 || floored) && is(1, "--channel")) found.channel = descriptor_number(argv[2]);
  if (floored && is(3, "--floor") && is(5, "--broker")) {
    found.floor = descriptor_number(argv[4]);
    found.broker = descriptor_number(argv[6]);
  }
  if (found.channel < 0 || (floored && found.broker < 0))
    fail("usage: ccbox-init --channel N [--floor F --broker B [--try ORDINARY FORBIDDEN]]");
  return found;
}

// No command is ever run: who starts this wants to know whether the floor and the broker work here.
int try_names(const inherited_descriptors& given, const std::string& ordinary, const std::string& forbidden) {
  require_first_process();
  forbid_new_privileges();
  drop_capabilities();
  const auto orders = read_floor_orders(unique_fd(given.floor));
  lay_floor(orders);
  die_with_launcher();
  hand_over_listener(orders, unique_fd(given.broker));
  try_broker(orders, ordinary, forbidden);
  return 0;
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
  const auto given = inherited(argc, argv);
  ensure_sealed_executable(argv);
  const bool is_trial = asks_for_trial(argc, argv);
  const std::string ordinary = is_trial ? argv[8] : "", forbidden = is_trial ? argv[9] : "";
  rename_command_line(argc, argv);
  close_all_but(given);
  hide_from_same_user();
  if (is_trial) return try_names(given, ordinary, forbidden);
  auto signals = block_signals();
  channel kernel_side(given.channel);

  const auto setup = wait_for_setup(kernel_side);
  const bool confined = !(setup.flags & setup_unconfined);
  const bool floored = given.floor >= 0;
  if (floored && !confined) fail("a floor without an enclosure");
  if (confined) {
    floor_orders orders;
    require_first_process();
    forbid_new_privileges();
    drop_capabilities();
    if (floored) lay_floor(orders = read_floor_orders(unique_fd(given.floor)));
    install_filter(setup.filter);
    die_with_launcher();
    if (floored) hand_over_listener(orders, unique_fd(given.broker));
    verify_confinement();
  } else {
    adopt_orphans();
  }

  kernel_side.send(frame_type::ready, 0,
                   encode(ready_message{protocol_version, static_cast<std::uint32_t>(getpid())}));
  supervisor(kernel_side, std::move(signals), confined).run();
}
