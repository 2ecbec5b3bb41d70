#include "support/listening_socket.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>

namespace ccbox::test {

listening_socket::listening_socket(int backlog) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 || ::listen(fd.get(), backlog) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&where), &size) != 0)
    throw std::runtime_error("no listening socket for a test");
  port = ntohs(where.sin_port);
}

}  // namespace ccbox::test
