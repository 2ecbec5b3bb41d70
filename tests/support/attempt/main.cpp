// One attempt at something that an enclosure may refuse. The exit code is the errno, 0 for success; 200:
// wrong usage.
//
//   attempt syscall NUMBER ARGUMENT...   an argument is a number, s:TEXT (its address) or z:SIZE (that many
//   zero bytes) attempt send-datagram PATH           out of an AF_UNIX datagram pair to the socket at PATH
//   attempt hop                          forks and ends for ever, in a new session each time
//   attempt script TEXT                  script.hpp
//   attempt table                        table.hpp
//   attempt storm TIMES | storm-until-failure    storm.hpp
//   attempt race NAME ITERATIONS         race.hpp
//   attempt refusing | answering ...     refusing.hpp
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "race.hpp"
#include "refusing.hpp"
#include "script.hpp"
#include "storm.hpp"
#include "table.hpp"

namespace {

long value_of(char* word) {
  if (std::strncmp(word, "s:", 2) == 0) return reinterpret_cast<long>(word + 2);
  if (std::strncmp(word, "z:", 2) == 0)
    return reinterpret_cast<long>(std::calloc(1, static_cast<std::size_t>(std::atoi(word + 2))));
  return static_cast<long>(std::strtoull(word, nullptr, 0));
}

int make_syscall(int argc, char** argv) {
  std::array<long, 6> arguments{};
  for (int i = 1; i < argc && i <= 6; ++i)
    arguments[static_cast<std::size_t>(i) - 1] = value_of(argv[i]);
  const long result = syscall(value_of(argv[0]), arguments[0], arguments[1], arguments[2], arguments[3],
                              arguments[4], arguments[5]);
  return result < 0 ? errno : 0;
}

int send_datagram(const char* path) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  // A new association of one half: connected to its peer it would refuse another address.
  if (connect(pair[0], reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return errno;
  return send(pair[0], "escaped", 7, 0) == 7 ? 0 : errno;
}

[[noreturn]] void hop() {
  for (;;) {
    if (fork() > 0) _exit(0);
    setsid();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "syscall" && argc > 2) return make_syscall(argc - 2, argv + 2);
  if (what == "send-datagram" && argc == 3) return send_datagram(argv[2]);
  if (what == "hop") hop();
  if (what == "script" && argc == 3) return attempt::run_script(argv[2]).error;
  if (what == "storm" && argc == 3) return attempt::storm(std::strtoul(argv[2], nullptr, 10));
  if (what == "storm-until-failure" && argc == 2) attempt::storm_until_failure();
  if (what == "race" && argc == 4) return attempt::run_race(argv[2], std::strtoul(argv[3], nullptr, 10));
  if (what == "refusing") return attempt::run_refusing(argc - 2, argv + 2);
  if (what == "answering") return attempt::run_answering(argc - 2, argv + 2);
  if (what == "table" && argc == 2) return attempt::run_table();
  return 200;
}
