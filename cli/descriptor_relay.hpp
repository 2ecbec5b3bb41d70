// Stands between a standard descriptor of the caller's and the command: the command gets a pipe, and what
// passes is copied. So it has the right to read or to write a stream, and none over the file behind it: a
// descriptor of a file can be opened anew through /proc/self/fd, to write what was handed in to be read, to
// read or cut what was there before, and its owner can change its mode.
//
//  - A file that is read: what the command took counts as read. The caller's position is left behind that,
//    also for those who share it (`while read line; do ccbox run … ; done < list`).
//  - A terminal that is read gives its lines as they are entered, and nothing while this process is in the
//    background.
//  - A named FIFO that is read: what the command did not take is left in it.
//  - What cannot be written ends the stream, so that the command is told, and is kept for failure().
//
// Runs on one thread; files are read and written there, as fast as they are.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

// How a command is given a standard descriptor of the caller's.
enum class hand_over {
  as_it_is,  // pipes without a name and sockets, which are nothing but streams; what ccbox-init refuses
  null,      // /dev/null: the enclosure has its own
  relayed,   // files, named FIFOs, devices, terminals
  refused,   // what is more than a stream and cannot be copied: O_PATH, pidfds, eventfds and the like
};
hand_over how_to_hand_over(int fd);
bool is_same_file(int fd, int other);

class descriptor_relay {
 public:
  // `fd`: 0 is read, 1 and 2 are written. A file is written up to `most_bytes`, as RLIMIT_FSIZE has it.
  static result<std::unique_ptr<descriptor_relay>> open(boost::asio::any_io_executor executor, int fd,
                                                        std::optional<std::uint64_t> most_bytes = {});
  ~descriptor_relay();

  result<unique_fd> command_end() const;  // before start(); a copy each time
  void start();                           // once the command has its end
  // Call when the enclosure has ended, for what is read last: all that it wrote is in place then, and the
  // position of what was read. One that moved meanwhile (an output shares it, another reader) is left as it
  // is.
  boost::asio::awaitable<void> finish();
  void abandon();  // finish() waits no longer: a terminal takes nothing more
  // What could not be read or written, and why.
  const std::optional<error>& failure() const;

 private:
  descriptor_relay();
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
