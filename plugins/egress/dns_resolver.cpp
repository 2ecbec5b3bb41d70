#include "dns_resolver.hpp"

#include <sys/random.h>

#include <array>
#include <boost/asio/basic_datagram_socket.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <optional>

#include "dns_message.hpp"

namespace ccbox::egress {
namespace {

using udp_socket = asio::basic_datagram_socket<asio::ip::udp, io_executor>;
using tcp_socket = asio::basic_stream_socket<asio::ip::tcp, io_executor>;
using timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, io_executor>;

asio::ip::address to_asio(const ip_address& from) {
  if (from.is_v4()) return asio::ip::address_v4(from.v4());
  asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), from.bytes.data(), bytes.size());
  return asio::ip::address_v6(bytes);
}

// The question for one family.
struct question {
  question(io_executor e, dns_type t) : type(t), udp(e), tcp(e), limit(e) {}
  const dns_type type;
  std::uint16_t id = 0;
  udp_socket udp;
  tcp_socket tcp;
  timer limit;
  std::optional<lookup_result> result;

  void close() {
    boost::system::error_code ignored;
    udp.close(ignored);
    tcp.close(ignored);
    limit.cancel();
  }
};

struct asking {
  asking(io_executor e, std::string n, resolver::answer d)
      : name(std::move(n)), done(std::move(d)), a(e, dns_type::a), aaaa(e, dns_type::aaaa) {}
  const std::string name;
  resolver::answer done;  // null: given up
  asio::ip::address server;
  std::uint16_t port = 53;
  std::chrono::milliseconds patience{1000};
  unsigned attempts = 3;
  question a, aaaa;
};

class pending : public lookup {
 public:
  explicit pending(std::shared_ptr<asking> what) : asking_(std::move(what)) {}
  ~pending() override {
    asking_->done = nullptr;
    asking_->a.close();
    asking_->aaaa.close();
  }

 private:
  std::shared_ptr<asking> asking_;
};

// The limit of one attempt cancels what the socket waits for.
template <class Socket>
void limit_wait(const std::shared_ptr<asking>& all, question& q, Socket& socket,
                std::chrono::milliseconds limit) {
  q.limit.expires_after(limit);
  q.limit.async_wait([all, &socket](boost::system::error_code cancelled) {
    boost::system::error_code ignored;
    if (!cancelled) socket.cancel(ignored);
  });
}

task<lookup_result> ask_tcp(std::shared_ptr<asking> all, question& q, std::string text) {
  constexpr auto broken = lookup_result::status::failed;
  limit_wait(all, q, q.tcp, all->patience * all->attempts);
  auto [refused] = co_await q.tcp.async_connect({all->server, all->port}, no_throw);
  if (refused) co_return lookup_result{broken, {}, {}};
  text.insert(0, {static_cast<char>(text.size() >> 8), static_cast<char>(text.size() & 0xff)});
  auto [unsent, sent] = co_await asio::async_write(q.tcp, asio::buffer(text), no_throw);
  std::array<unsigned char, 2> size = {};
  if (unsent) co_return lookup_result{broken, {}, {}};
  auto [no_size, got] = co_await asio::async_read(q.tcp, asio::buffer(size), no_throw);
  if (no_size) co_return lookup_result{broken, {}, {}};
  std::string message(static_cast<std::size_t>(size[0] << 8 | size[1]), '\0');
  auto [no_message, length] = co_await asio::async_read(q.tcp, asio::buffer(message), no_throw);
  if (no_message) co_return lookup_result{broken, {}, {}};
  auto answer = read_dns_answer(message, q.id, all->name, q.type);
  if (answer.what != dns_answer::status::answered) co_return lookup_result{broken, {}, {}};
  co_return std::move(answer.result);
}

task<lookup_result> ask_udp(std::shared_ptr<asking> all, question& q) {
  const auto text = write_dns_question(q.id, all->name, q.type);
  boost::system::error_code failed;
  q.udp.connect({all->server, all->port}, failed);
  if (failed) co_return lookup_result{lookup_result::status::failed, {}, {}};
  auto wait = all->patience;
  bool unreachable = false;
  for (unsigned attempt = 0; attempt < all->attempts && all->done; ++attempt, wait *= 2) {
    q.udp.send(asio::buffer(text), 0, failed);
    limit_wait(all, q, q.udp, wait);
    for (;;) {
      std::array<char, 4096> bytes;
      auto [stopped, length] = co_await q.udp.async_receive(asio::buffer(bytes), no_throw);
      if (stopped) {
        // A server that is not there says so at once; ask again all the same, after the pause.
        unreachable = stopped != asio::error::operation_aborted;
        if (!unreachable) break;
        const auto [cancelled] = co_await q.udp.async_wait(asio::socket_base::wait_read, no_throw);
        if (cancelled) break;
        continue;
      }
      auto answer = read_dns_answer({bytes.data(), length}, q.id, all->name, q.type);
      if (answer.what == dns_answer::status::not_ours) continue;
      q.limit.cancel();
      if (answer.what == dns_answer::status::truncated) co_return co_await ask_tcp(all, q, text);
      co_return std::move(answer.result);
    }
  }
  co_return lookup_result{
      unreachable ? lookup_result::status::failed : lookup_result::status::timed_out, {}, {}};
}

// IPv6 first, as RFC 6724 would have it; the race between them is the dialler's.
lookup_result both(const lookup_result& a, const lookup_result& aaaa) {
  using status = lookup_result::status;
  lookup_result out;
  out.ttl = std::chrono::hours(24);
  for (const auto* one : {&aaaa, &a}) {
    if (one->what != status::found || one->addresses.empty()) continue;
    out.addresses.insert(out.addresses.end(), one->addresses.begin(), one->addresses.end());
    out.ttl = std::min(out.ttl, one->ttl);
  }
  if (!out.addresses.empty()) {
    out.what = status::found;
  } else {
    const auto bad = [](status s) { return s == status::failed || s == status::timed_out; };
    out.what = bad(a.what) ? a.what : bad(aaaa.what) ? aaaa.what : status::no_such_name;
  }
  return out;
}

task<void> ask(std::shared_ptr<asking> all, question& q) {
  q.result = co_await ask_udp(all, q);
  q.close();
  if (!all->done || !all->a.result || !all->aaaa.result) co_return;
  const auto done = std::exchange(all->done, nullptr);
  done(both(*all->a.result, *all->aaaa.result));
}

}  // namespace

std::unique_ptr<lookup> dns_resolver::resolve(asio::io_context& context, const std::string& name,
                                              answer done) {
  auto all = std::make_shared<asking>(context.get_executor(), name, std::move(done));
  all->server = to_asio(server_.address);
  all->port = server_.port;
  all->patience = patience_;
  all->attempts = attempts_;
  for (auto* q : {&all->a, &all->aaaa}) {
    if (::getrandom(&q->id, sizeof q->id, 0) != static_cast<ssize_t>(sizeof q->id)) q->id = 0;
    // What is thrown is a want of memory; the caller's limit ends the lookup.
    asio::co_spawn(context.get_executor(), ask(all, *q), [](std::exception_ptr) {});
  }
  return std::make_unique<pending>(std::move(all));
}

}  // namespace ccbox::egress
