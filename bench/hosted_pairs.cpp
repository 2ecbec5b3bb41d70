#include "hosted_pairs.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ccbox/plugin.hpp"
#include "peer.hpp"

namespace ccbox::bench {

namespace {

using plugin::str;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::_Exit(1);
}

void send_listener(int channel, int fd) {
  char byte = fd >= 0 ? 'u' : 't';
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  if (::sendmsg(channel, &message, MSG_NOSIGNAL) != 1) fail("the process of the pairs is gone");
}

// The listener that came along, or -1; false: the other side is gone.
bool receive_listener(int channel, int& fd) {
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1) return false;
  fd = -1;
  if (const auto* const head = CMSG_FIRSTHDR(&message)) std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return true;
}

class loaded_plugin {
 public:
  explicit loaded_plugin(const std::string& file) {
    void* const object = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) fail(::dlerror());
    const auto entry = reinterpret_cast<ccbox_plugin_entry>(::dlsym(object, "ccbox_plugin_v1"));
    if (!entry) fail(file + " is no plugin");
    host_.size = sizeof host_;
    host_.log = [](void*, ccbox_level, ccbox_str) {};
    host_.emit = [](void*, ccbox_str, ccbox_str, ccbox_str) -> ccbox_status { return CCBOX_OK; };
    const ccbox_config config = {sizeof config, sizeof(ccbox_option), nullptr, 0};
    char bytes[512];
    ccbox_text error = {bytes, sizeof bytes, 0};
    if (entry()->create(&host_, &config, &plugin_, &error) != CCBOX_OK) fail({bytes, error.length});
    table_ = static_cast<const ccbox_egress*>(entry()->get_extension(plugin_, str(CCBOX_EGRESS_EXTENSION)));
  }

  std::uint16_t open(const std::string& id, const std::vector<ccbox_egress_rule>& rules, int listener) {
    const std::vector<ccbox_option> options = {{str("max_tunnels"), str("8192")},
                                               {str("max_pending"), str("1024")}};
    const ccbox_listener listeners[] = {{CCBOX_LISTENER_HTTP, listener, str("127.0.0.1:1")},
                                        {CCBOX_LISTENER_SOCKS, listener, str("127.0.0.1:1")}};
    ccbox_egress_request request = {};
    request.size = sizeof request;
    request.rules = rules.data();
    request.rule_count = rules.size();
    request.rule_stride = sizeof(ccbox_egress_rule);
    request.options = options.data();
    request.option_count = options.size();
    request.option_stride = sizeof(ccbox_option);
    request.listeners = listeners;
    request.listener_count = listener >= 0 ? 2 : 0;
    request.listener_stride = sizeof(ccbox_listener);
    request.session_id = str(id);
    std::uint16_t port = 0;
    ccbox_egress_sink sink = {};
    sink.size = sizeof sink;
    sink.ctx = &port;
    sink.endpoint = [](void* ctx, ccbox_listener_kind kind, ccbox_str address) {
      const std::string text(plugin::view(address));
      if (kind == CCBOX_LISTENER_HTTP)
        *static_cast<std::uint16_t*>(ctx) =
            static_cast<std::uint16_t>(std::atoi(text.c_str() + text.rfind(':') + 1));
    };
    sink.environment = [](void*, ccbox_str, ccbox_str, std::uint32_t) {};
    char bytes[512];
    ccbox_text error = {bytes, sizeof bytes, 0};
    if (table_->open(plugin_, &request, &sink, &error) != CCBOX_OK) fail({bytes, error.length});
    return port;
  }

 private:
  ccbox_host host_ = {};
  ccbox_plugin* plugin_ = nullptr;
  const ccbox_egress* table_ = nullptr;
};

}  // namespace

hosted_pairs::hosted_pairs(const std::string& plugin_file, std::uint16_t origin_port) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail("no socket pair");
  pid_ = run_forked([&] {
    ::close(ends[0]);
    serve(ends[1], plugin_file, origin_port);
  });
  ::close(ends[1]);
  channel_ = ends[0];
}

hosted_pairs::~hosted_pairs() {
  ::close(channel_);
  end_process(pid_);
}

std::uint16_t hosted_pairs::open(int unix_listener) {
  send_listener(channel_, unix_listener);
  std::uint16_t port = 0;
  if (::recv(channel_, &port, sizeof port, 0) != sizeof port) fail("the process of the pairs is gone");
  return port;
}

void hosted_pairs::serve(int channel, const std::string& plugin_file, std::uint16_t origin_port) {
  loaded_plugin pairs(plugin_file);
  const auto allowed = "127.0.0.1:" + std::to_string(origin_port);
  std::vector<ccbox_egress_rule> rules = {{CCBOX_EGRESS_ALLOW, 0, str(allowed), str("bench"), str("")}};
  int listener = -1;
  for (int count = 0; receive_listener(channel, listener); ++count) {
    const auto port = pairs.open("bench-" + std::to_string(count), rules, listener);
    if (listener >= 0) ::close(listener);
    if (::send(channel, &port, sizeof port, MSG_NOSIGNAL) != sizeof port) break;
  }
  std::_Exit(0);
}

}  // namespace ccbox::bench
