// The socket and coroutine types of the pair. All of it runs on one worker's thread; sockets are non-blocking
// and close-on-exec, and no call here waits.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <string_view>

namespace ccbox::egress {

namespace asio = boost::asio;
using io_executor = asio::io_context::executor_type;
template <class T>
using task = asio::awaitable<T, io_executor>;
constexpr asio::use_awaitable_t<io_executor> in_task;
// Completes with {error_code, ...} and throws nothing.
constexpr asio::as_tuple_t<asio::use_awaitable_t<io_executor>> no_throw;

using stream_socket = asio::basic_stream_socket<asio::generic::stream_protocol, io_executor>;

// Takes over a descriptor, also when it fails: false, and the descriptor is closed.
bool adopt(stream_socket& into, int fd);

// Bytes at the front of `text` that the socket took at once; -1 with errno. Never raises SIGPIPE.
std::ptrdiff_t send_now(int fd, std::string_view text);
// -1 with errno; 0: the peer has ended its direction.
std::ptrdiff_t receive_now(int fd, char* into, std::size_t capacity);
bool would_block(int error);

// True if `socket` can only be closed: reset, or ended by the peer while nothing of it is unread.
enum class liveness { idle, has_data, ended, broken };
liveness look(int fd);

// The next close() resets the connection instead of ending it in order: the peer sees that something is
// missing.
void reset_on_close(int fd);
// What a socket takes beyond what its peer's window lets it send. The system's own bound is megabytes.
constexpr std::size_t most_unsent_bytes = 256 * 1024;
// What a socket keeps of its peer and nobody has taken, about: the system grows it to megabytes otherwise,
// where the peer is fast and far.
constexpr std::size_t most_unread_bytes = 256 * 1024;
void bound_unread(int fd);
// TCP_NODELAY, keep-alive after 60 s, and most_unsent_bytes. Accepted sockets have these from their listener.
void set_stream_options(int fd);

// All of `text`; false: the peer is gone or the socket was closed meanwhile.
task<bool> send_all(stream_socket& socket, std::string_view text);
// The same for bytes that are gone after the next wait, as the scratch of a worker is.
task<bool> send_copied(stream_socket& socket, std::string_view text);

}  // namespace ccbox::egress
