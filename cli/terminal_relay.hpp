// Joins the caller's terminal to a pty master: what is typed goes in, what is printed comes out.
//
//  - Standard input and output are terminals: the caller's terminal is in raw mode while the relay runs, so
//    that keys such as Ctrl-C and Ctrl-Z reach the line discipline inside, where the job control is.
//  - Only input is one (`ccbox run … | less`): lines are passed on as they are entered, the terminal stays as
//    it is, and while another program of the pipeline has it in raw mode nothing is read.
//  - In the background (`ccbox run … &`) the terminal is neither read nor changed.
//
// The terminal's modes are put back by the destructor, by pause(), and when a fatal signal ends the program.
// Runs on one thread; owns its own descriptors of the terminal, so the caller's stay blocking.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string_view>

#include "enclosure.hpp"
#include "result.hpp"
#include "unique_fd.hpp"

namespace ccbox {

// Which of 0, 1, 2 are terminals.
std::array<bool, 3> standard_terminals();
// A descriptor of our own for the same terminal: O_NONBLOCK belongs to the open file, which the caller's
// shell shares.
unique_fd reopen_terminal(int fd);

class terminal_relay {
 public:
  // `terminals`: those that the command's pty stands for; at least one.
  static result<std::unique_ptr<terminal_relay>> open(boost::asio::any_io_executor executor,
                                                      std::array<bool, 3> terminals);
  ~terminal_relay();

  window_size size() const;  // of the caller's terminal
  // `seen` gets what is printed, after it was passed on.
  void start(unique_fd pty_master, std::function<void(std::string_view)> seen = {});
  void resized();  // tells the pty that the terminal's size has changed
  void pause();    // before this process stops
  void resume();   // after it goes on, perhaps in the background
  // Resumes when all that the command's side wrote has been printed. Call when the enclosure has ended.
  boost::asio::awaitable<void> finish();
  void abandon();  // finish() waits no longer: the terminal takes nothing more

 private:
  terminal_relay();
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox
