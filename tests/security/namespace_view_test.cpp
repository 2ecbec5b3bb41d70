// What of the host an enclosure can see or reach besides files: processes, network, sockets, devices.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/attacked.hpp"
#include "support/temporary_directory.hpp"

using namespace ccbox;
using namespace ccbox::test;

namespace {

planned_request with_host_network() {
  auto request = request_for_this_caller({});
  request.network = CCBOX_NETWORK_HOST;
  request.waived = CCBOX_RULE_NET_PROXY_ONLY;
  return request;
}

unique_fd listening(int family, const sockaddr* address, socklen_t length) {
  unique_fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(fd);
  REQUIRE(::bind(fd.get(), address, length) == 0);
  REQUIRE(::listen(fd.get(), 8) == 0);
  return fd;
}

unique_fd listening_unix(const std::string& name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  return listening(AF_UNIX, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1));
}

}  // namespace

TEST_CASE("no process of the host is seen or can be signalled") {
  const attacked_enclosure inside(request_for_this_caller({}));
  std::istringstream names(inside.ask({"list", "/proc"}).data);
  std::string pids;
  for (std::string name; std::getline(names, name);)
    if (name.find_first_not_of("0123456789") == name.npos) pids += name + " ";
  CHECK(pids == "1 ");
  CHECK(inside.ask({"hello"}).data == "1");
  CHECK(inside.attempt({"kill", "1"}) == 0);
  CHECK(inside.attempt({"kill", std::to_string(inside.launcher())}) == ESRCH);
  CHECK(inside.attempt({"kill", std::to_string(::getpid())}) == ESRCH);
  CHECK(inside.ask({"read", "/proc/1/cmdline"}).data.find("--args") == std::string::npos);
}

TEST_CASE("what /proc tells of the whole machine cannot be read, whoever the caller is") {
  const attacked_enclosure inside(request_for_this_caller({}));
  std::size_t readable_outside = 0;
  for (const std::string name : {"kcore", "key-users", "keys", "kpagecgroup", "kpagecount", "kpageflags",
                                 "pagetypeinfo", "slabinfo", "timer_list", "vmallocinfo"}) {
    const std::string path = "/proc/" + name;
    char byte = 0;
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const bool readable = file && ::read(file.get(), &byte, 1) == 1;
    readable_outside += readable;
    CAPTURE(path);
    // A user who is not root sees the keys of that user alone.
    if (::geteuid() == 0 || !name.starts_with("key")) CHECK(inside.attempt({"read", path}) != 0);
  }
  if (::geteuid() == 0) CHECK(readable_outside > 3);
}

TEST_CASE("the network of the enclosure has a loopback device and nothing else") {
  const attacked_enclosure inside(request_for_this_caller({}));
  std::istringstream lines(inside.ask({"read", "/proc/self/net/dev"}).data);
  std::string devices;
  for (std::string line; std::getline(lines, line);)
    if (const auto colon = line.find(':'); colon != line.npos)
      devices += line.substr(line.find_first_not_of(' '), colon);
  CHECK(devices.find("lo:") == 0);
  CHECK(devices.find(':') == devices.rfind(':'));
}

TEST_CASE("a listener on the host's loopback is reached only with the network of the host") {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto server = listening(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  socklen_t length = sizeof address;
  REQUIRE(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  const auto port = std::to_string(ntohs(address.sin_port));
  const attacked_enclosure open(with_host_network()), inside(request_for_this_caller({}));
  CHECK(open.attempt({"connect-inet", "127.0.0.1", port}) == 0);
  CHECK((open.planned().enforced & CCBOX_RULE_NET_PROXY_ONLY) == 0);
  CHECK(inside.attempt({"connect-inet", "127.0.0.1", port}) == ECONNREFUSED);
  CHECK(inside.attempt({"connect-inet", "192.0.2.1", "80"}) == ENETUNREACH);
  CHECK((inside.planned().enforced & CCBOX_RULE_NET_PROXY_ONLY) != 0);
}

TEST_CASE("abstract sockets of the host belong to another network namespace") {
  const auto name = "ccbox-test-" + std::to_string(::getpid());
  const auto server = listening_unix(name, true);
  const attacked_enclosure open(with_host_network()), inside(request_for_this_caller({}));
  CHECK(open.attempt({"connect-abstract", name}) == 0);
  CHECK(inside.attempt({"connect-abstract", name}) == ECONNREFUSED);
}

TEST_CASE("sockets in directories that are not mounted are not there") {
  const temporary_directory root;
  const auto path = root / "socket";
  const auto server = listening_unix(path, false);
  const attacked_enclosure open(request_for_this_caller({as_found(mount_rule(root.path(), 0))}));
  const attacked_enclosure inside(request_for_this_caller({}));
  CHECK(open.attempt({"connect-path", path}) == 0);  // this one is the system-call filter's to refuse
  CHECK(inside.attempt({"connect-path", path}) == ENOENT);
}

TEST_CASE("/run, /tmp, /var/tmp and /dev/shm are private and empty") {
  const attacked_enclosure inside(request_for_this_caller({}));
  for (const std::string directory : {"/run", "/tmp", "/var/tmp", "/dev/shm"}) {
    CHECK(inside.ask({"list", directory}).data == "");
    CHECK(inside.attempt({"create", directory + "/mine"}) == 0);
    CHECK_FALSE(std::filesystem::exists(directory + "/mine"));
  }
  CHECK(inside.ask({"stat", "/tmp"}).data == "41777");
}

TEST_CASE("HOME is there, private and writable; the root directory is not") {
  const attacked_enclosure inside(request_for_this_caller({}));
  CHECK(inside.ask({"stat", "/home/agent"}).data == "40700");
  CHECK(inside.attempt({"create", "/home/agent/.profile"}) == 0);
  for (const std::string path : {"/x", "/home/x", "/dev/x", "/usr/x", "/usr/bin/x"})
    CHECK(inside.attempt({"create", path}) == EROFS);
  CHECK(inside.attempt({"mkdir", "/x"}) == EROFS);
}

TEST_CASE("with the host's root directory bound, /proc, /dev and /run are still the enclosure's own") {
  auto request = request_for_this_caller({});
  request.rules = {as_found(mount_rule("/", CCBOX_RULE_READ_ONLY))};
  request.home = "/run/ccbox/home";
  request.tmpdir = "/run/ccbox/tmp";
  const attacked_enclosure inside(request);
  CHECK(inside.attempt({"write", "/dev/null"}) == 0);
  CHECK(inside.attempt({"kill", std::to_string(::getpid())}) == ESRCH);
  CHECK(inside.attempt({"read", "/proc/" + std::to_string(::getpid()) + "/cmdline"}) == ENOENT);
  CHECK(inside.ask({"list", "/run"}).data == "ccbox\n");
  CHECK(inside.attempt({"create", "/run/ccbox/home/x"}) == 0);
  CHECK(inside.attempt({"create", "/run/ccbox/tmp/x"}) == 0);
  CHECK(inside.attempt({"create", "/tmp/ccbox-test-x"}) == EROFS);
}

TEST_CASE("the devices that every program needs work, and no other is there") {
  const attacked_enclosure inside(request_for_this_caller({}));
  CHECK(inside.attempt({"write", "/dev/null"}) == 0);
  CHECK(inside.attempt({"write", "/dev/zero"}) == 0);
  CHECK(inside.attempt({"write", "/dev/full"}) == ENOSPC);
  CHECK(inside.ask({"read", "/dev/urandom"}).data.size() == 4096);
  CHECK(inside.ask({"read", "/dev/zero"}).data == std::string(4096, '\0'));
  CHECK(inside.ask({"list", "/dev"}).data ==
        "core\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n");
}

TEST_CASE("the devices are the host's own, and what they are like there is not changed from inside") {
  const attacked_enclosure inside(request_for_this_caller({}));
  for (const std::string device : {"null", "zero", "full", "random", "urandom", "tty"}) {
    // To the owner that it has already, if this is root: nothing would be lost.
    CHECK(inside.attempt({"chown", "/dev/" + device}) == (::geteuid() == 0 ? EROFS : EPERM));
    CHECK(inside.attempt({"open-write", "/dev/" + device}) == (device == "tty" ? ENXIO : 0));
  }
}

TEST_CASE("what /proc has of the host cannot be written, by root neither") {
  const attacked_enclosure inside(request_for_this_caller({}));
  for (const std::string path :
       {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches",
        "/proc/sys/fs/protected_symlinks", "/proc/sys/user/max_user_namespaces"}) {
    const int error = inside.attempt({"open-write", path});
    CHECK_MESSAGE((error == EROFS || error == EACCES), path << " " << error);
  }
  // Everything else that the kernel lists for all, whatever it is called. An owner of namespaces may set what
  // is theirs, and the pressure files take anybody's triggers.
  const auto is_own = [](const std::string& path) {
    if (::geteuid() == 0) return false;
    for (const std::string own : {"/proc/sys/kernel/", "/proc/sys/fs/mqueue/", "/proc/pressure/"})
      if (path.compare(0, own.size(), own) == 0) return true;
    return false;
  };
  std::vector<std::string> directories = {"/proc"};
  std::string writable;
  while (!directories.empty()) {
    const auto directory = directories.back();
    directories.pop_back();
    std::istringstream names(inside.ask({"list", directory}).data);
    for (std::string name; std::getline(names, name);) {
      const auto path = directory + "/" + name;
      if (path == "/proc/1" || path == "/proc/self" || path == "/proc/thread-self") continue;
      const auto mode = inside.ask({"stat", path}).data;
      if (mode.substr(0, 2) == "40" || mode.substr(0, 2) == "41")
        directories.push_back(path);
      else if (mode.substr(0, 3) == "100" && !is_own(path) && inside.attempt({"open-write", path}) == 0)
        writable += path + " ";
    }
  }
  CHECK(writable == "");
}
