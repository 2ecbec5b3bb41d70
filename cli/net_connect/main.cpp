#include <csignal>

#include "net_connect/net_connect.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return ccbox::net_connect(argc, argv);
}
