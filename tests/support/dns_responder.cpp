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

std::string respond(std::string_view asked, const question& q, const dns_responder::answer& a) {
  std::vector<std::string> records;
  for (const auto& text : a.addresses) {
    const bool v6 = text.find(':') != text.npos;
    if ((q.type == 28) != v6) continue;
    char bytes[16];
    if (::inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), bytes) == 1)
      records.emplace_back(bytes, v6 ? 16u : 4u);
  }
  std::string out(asked.substr(0, 2));
  put16(out, 0x8180u | a.code);
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

dns_responder::dns_responder()
    : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&where), &size) != 0)
    throw std::runtime_error("no test DNS server");
  port_ = ntohs(where.sin_port);
  thread_ = std::thread([this] { serve(); });
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

void dns_responder::serve() {
  for (;;) {
    pollfd both[] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 || both[1].revents != 0) return;
    char bytes[2048];
    sockaddr_in from = {};
    socklen_t size = sizeof from;
    const auto n =
        ::recvfrom(socket_.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 12) continue;
    const std::string_view message(bytes, static_cast<std::size_t>(n));
    const auto q = read_question(message);
    answer a;
    a.code = 3;
    {
      const std::lock_guard lock(mutex_);
      const auto count = asked_[{q.name, q.type}]++;
      const auto at = scripts_.find(q.name);
      if (at != scripts_.end()) a = at->second(count);
    }
    if (a.silent) continue;
    auto reply = respond(message, q, a);
    if (a.wrong_id_first) {
      auto forged = respond(message, q, {{"192.0.2.66", "2001:db8::66"}, 0, 60, false, false});
      forged[0] = static_cast<char>(forged[0] ^ 1);
      ::sendto(socket_.get(), forged.data(), forged.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
    ::sendto(socket_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }
}

}  // namespace ccbox::test
