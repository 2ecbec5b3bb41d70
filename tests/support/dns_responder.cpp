#include "support/dns_responder.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "support/tcp_peer.hpp"

namespace ccbox::test {
namespace {

void put16(std::string& out, unsigned value) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}

unsigned get16(std::string_view from, std::size_t at) {
  return static_cast<unsigned>(static_cast<unsigned char>(from[at])) << 8 |
         static_cast<unsigned char>(from[at + 1]);
}

struct question {
  std::string name;
  unsigned type = 0;
  std::size_t end = 0;
};

question read_question(std::string_view message) {
  question out;
  std::size_t at = 12;
  while (at < message.size() && message[at] != 0) {
    const auto length = static_cast<unsigned char>(message[at]);
    if (!out.name.empty()) out.name += '.';
    out.name += message.substr(at + 1, length);
    at += 1u + length;
  }
  if (at + 5 > message.size()) return {};
  out.type = get16(message, at + 1);
  out.end = at + 5;
  return out;
}

std::string respond(std::string_view asked, const question& q, const dns_responder::answer& a,
                    bool truncated = false) {
  std::vector<std::string> records;
  for (const auto& text : truncated ? std::vector<std::string>() : a.addresses) {
    const bool v6 = text.find(':') != text.npos;
    if ((q.type == 28) != v6) continue;
    char bytes[16];
    if (::inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), bytes) == 1)
      records.emplace_back(bytes, v6 ? 16u : 4u);
  }
  std::string out(asked.substr(0, 2));
  put16(out, 0x8180u | (truncated ? 0x0200u : 0u) | a.code);
  put16(out, 1);
  put16(out, static_cast<unsigned>(records.size()));
  put16(out, 0);
  put16(out, 0);
  out += asked.substr(12, q.end - 12);
  for (const auto& data : records) {
    put16(out, 0xc00c);
    put16(out, q.type);
    put16(out, 1);
    put16(out, a.ttl >> 16);
    put16(out, a.ttl & 0xffff);
    put16(out, static_cast<unsigned>(data.size()));
    out += data;
  }
  return out;
}

}  // namespace

dns_responder::dns_responder() : stop_(::eventfd(0, EFD_CLOEXEC)) {
  // A port that is free for both protocols.
  for (int i = 0; i < 100; ++i) {
    if (!listen()) continue;
    thread_ = std::thread([this] { serve(); });
    return;
  }
  throw std::runtime_error("no test DNS server");
}

bool dns_responder::listen() {
  socket_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  listening_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  const auto at = reinterpret_cast<sockaddr*>(&where);
  if (::bind(socket_.get(), at, size) != 0 || ::getsockname(socket_.get(), at, &size) != 0) return false;
  port_ = ntohs(where.sin_port);
  return ::bind(listening_.get(), at, size) == 0 && ::listen(listening_.get(), 16) == 0;
}

dns_responder::~dns_responder() {
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof one) != sizeof one) std::abort();
  thread_.join();
}

void dns_responder::set(const std::string& name, answer always) {
  set(name, [always](unsigned) { return always; });
}

void dns_responder::set(const std::string& name, script what) {
  const std::lock_guard lock(mutex_);
  scripts_[name] = std::move(what);
}

unsigned dns_responder::questions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto at = asked_.find({name, 1});
  return at == asked_.end() ? 0 : at->second;
}

unsigned dns_responder::questions_over_tcp(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto at = asked_over_tcp_.find({name, 1});
  return at == asked_over_tcp_.end() ? 0 : at->second;
}

dns_responder::answer dns_responder::find(const std::string& name, unsigned type, bool over_tcp) {
  const std::lock_guard lock(mutex_);
  const auto count = (over_tcp ? asked_over_tcp_ : asked_)[{name, type}]++;
  const auto at = scripts_.find(name);
  if (at != scripts_.end()) return at->second(count);
  answer none;
  none.code = 3;
  return none;
}

void dns_responder::serve() {
  for (;;) {
    pollfd all[] = {{socket_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(all, 3, -1) < 0 || all[2].revents != 0) return;
    if (all[0].revents != 0) serve_udp();
    if (all[1].revents != 0) serve_tcp();
  }
}

void dns_responder::serve_udp() {
  char bytes[2048];
  sockaddr_in from = {};
  socklen_t size = sizeof from;
  const auto n = ::recvfrom(socket_.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
  if (n < 12) return;
  const std::string_view message(bytes, static_cast<std::size_t>(n));
  const auto q = read_question(message);
  const auto a = find(q.name, q.type, false);
  if (a.silent) return;
  if (a.wrong_id_first) {
    auto forged = respond(message, q, {{"192.0.2.66", "2001:db8::66"}});
    forged[0] = static_cast<char>(forged[0] ^ 1);
    ::sendto(socket_.get(), forged.data(), forged.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
  const auto reply = respond(message, q, a, a.truncated);
  ::sendto(socket_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
}

// One question a connection.
void dns_responder::serve_tcp() {
  tcp_peer client(unique_fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  const auto head = client.read_exactly(2);
  if (head.size() < 2) return;
  const auto message = client.read_exactly(get16(head, 0));
  if (message.size() < 12) return;
  const auto q = read_question(message);
  const auto a = find(q.name, q.type, true);
  const auto reply = respond(message, q, a);
  std::string out;
  put16(out, static_cast<unsigned>(reply.size()));
  out += reply;
  client.send(a.cut_over_tcp ? out.substr(0, out.size() - 1) : out);
}

}  // namespace ccbox::test
