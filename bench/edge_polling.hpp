// What the bench's two servers have in common: non-blocking sockets that epoll reports by their edges.
#pragma once

#include <cstdint>

namespace ccbox::bench {

void make_non_blocking(int fd);
// Events carry `of`; null for the listener.
void watch_listener(int epoll, int fd);
void watch_edges(int epoll, int fd, void* of);
// The next connection, non-blocking and without delay; -1: none waits.
int accept_waiting(int listener);
void send_without_delay(int fd);

}  // namespace ccbox::bench
