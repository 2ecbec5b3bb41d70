// A real ccbox-init, started directly and spoken to over its channel, in blocking calls with a limit of ten
// seconds.
//
// `enclosed`: first process of new user, pid and mount namespaces with a fresh /proc and /dev/pts, with the
// base filter; user ids as an enclosure has them (identity for root, the caller's own otherwise).
// `unconfined`: as backend `none` starts it. Whatever does not happen in time throws std::runtime_error with
// what init wrote to standard error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "init/protocol.hpp"
#include "unique_fd.hpp"

namespace ccbox::test {

struct init_frame {
  init::frame_header header{};
  std::string payload;
  std::vector<unique_fd> descriptors;
};

enum class init_setting { enclosed, unconfined };

class init_process {
 public:
  struct options {
    bool complete_setup = true;              // false: the test speaks first
    std::string program;                     // default: ccbox-init of this build
    std::vector<std::string> argv;           // default: program --channel 3
    std::function<void()> before_exec = {};  // in the child, after the namespaces are set up
  };

  explicit init_process(init_setting setting);
  init_process(init_setting setting, options chosen);
  ~init_process();  // kills and reaps
  init_process(const init_process&) = delete;
  init_process& operator=(const init_process&) = delete;

  pid_t pid() const { return pid_; }  // as the test sees it
  int channel() const { return channel_.get(); }
  std::uint32_t pid_inside() const { return ready_.pid; }
  void close_channel() { channel_.reset(); }

  static init::exec_message command(std::vector<std::string> argv);  // cwd /, PATH set, nothing else
  static init::exec_message shell(const std::string& script);        // sh -c

  void send(init::frame_type type, std::uint64_t id, const std::string& payload,
            const std::vector<int>& fds = {});
  void send_bytes(const std::string& bytes, const std::vector<int>& fds = {});
  std::uint64_t exec(init::exec_message message, const std::vector<int>& fds = {});  // returns the id
  void signal(std::uint64_t id, int number) {
    send(init::frame_type::signal, id, init::encode_number(number));
  }
  void shutdown(std::uint32_t grace_ms) {
    send(init::frame_type::shutdown, 0, init::encode_number(grace_ms));
  }

  // The next frame with this id of this type, or of type failed; frames in between are kept for later.
  init_frame wait_for(init::frame_type type, std::uint64_t id);
  init::exited_message wait_exit(std::uint64_t id);
  bool has_frame(init::frame_type type, std::uint64_t id);  // without waiting
  // wait(2) status once init itself has ended.
  int wait_end();

  struct outcome {
    std::optional<init::failed_message> failed;
    init::exited_message exit{};
    int pid_inside = 0;
    std::string output;  // standard output and error
    int code() const {
      return exit.signalled ? 128 + static_cast<int>(exit.value) : static_cast<int>(exit.value);
    }
  };
  outcome run(init::exec_message message, const std::string& input = {});

  std::string error_output();

 private:
  void start(init_setting setting, const options& chosen);
  init_frame read_frame();
  std::string read_exactly(std::size_t size, std::vector<unique_fd>& descriptors);
  [[noreturn]] void give_up(const std::string& what);

  pid_t pid_ = -1;
  unique_fd channel_, errors_;
  init::ready_message ready_;
  std::deque<init_frame> kept_;
  std::uint64_t next_id_ = 1;
};

// Asks again and again, without sleeping for a fixed time, until it is true or ten seconds are over.
bool eventually(const std::function<bool()>& fact);

}  // namespace ccbox::test
