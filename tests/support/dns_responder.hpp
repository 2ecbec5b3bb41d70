// A DNS server on a free port of 127.0.0.1, UDP and TCP, for tests, whose answers are told per name and may
// change from one question to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "unique_fd.hpp"

namespace ccbox::test {

class dns_responder {
 public:
  struct answer {
    std::vector<std::string> addresses;  // IPv4 answers A, IPv6 AAAA; none for a type: an empty answer
    unsigned code = 0;                   // 3: no such name, 2: server failure
    unsigned ttl = 60;
    bool silent = false;
    bool wrong_id_first = false;  // a forged answer comes before the right one
    bool truncated = false;       // over UDP it is cut before the first address; TCP has all of it
    bool cut_over_tcp = false;    // the connection ends within the answer
  };
  // `question` counts the questions of each type for the name, from 0.
  using script = std::function<answer(unsigned question)>;

  dns_responder();
  ~dns_responder();
  void set(const std::string& name, answer always);
  void set(const std::string& name, script what);
  std::uint16_t port() const { return port_; }
  unsigned questions(const std::string& name) const;  // of type A, over UDP
  unsigned questions_over_tcp(const std::string& name) const;

 private:
  bool listen();
  void serve();
  void serve_udp();
  void serve_tcp();
  // Counts the question and asks the script.
  answer find(const std::string& name, unsigned type, bool over_tcp);
  unique_fd socket_, listening_, stop_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, script> scripts_;
  std::map<std::pair<std::string, unsigned>, unsigned> asked_, asked_over_tcp_;
  std::thread thread_;
};

}  // namespace ccbox::test
