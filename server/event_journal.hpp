// What happened in the sessions of this server, kept for a while: those who watch read from here, from any
// point that is still there.
//
//  - Every event gets a position: the order of the whole server, from 1, without gaps.
//  - A session's last events are kept, up to a number of bytes. An event that an attached reader has not
//  taken yet
//    is never dropped: the session's publisher waits, and with it the command that writes. Readers must
//    therefore take what there is, or be destroyed.
//  - The events of a destroyed session are kept until many others have ended.
//
// Everything here runs on the thread of the executor. Readers end before the journal does.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event_bus.hpp"
#include "result.hpp"
#include "sandbox_event.hpp"

namespace ccbox::server {

struct journal_entry {
  std::uint64_t position = 0;
  sandbox_event event;
};
using journal_entry_ptr = std::shared_ptr<const journal_entry>;

struct journal_limits {
  std::size_t session_bytes = 4 << 20;
  std::size_t ended_sessions = 64;
};

class event_journal {
 public:
  event_journal(boost::asio::any_io_executor executor, event_bus& bus, journal_limits limits = {});
  ~event_journal();
  event_journal(const event_journal&) = delete;
  event_journal& operator=(const event_journal&) = delete;

  // From now on, before the session is launched. What was kept under this id is dropped.
  void follow(const std::string& session_id);
  // It has been destroyed: its readers come to an end when they have taken the rest. Waits for what is on its
  // way.
  boost::asio::awaitable<void> finish(const std::string& session_id);
  // It was never started.
  void forget(const std::string& session_id);

  class reader {
   public:
    reader(reader&&) noexcept;
    reader& operator=(reader&&) noexcept;
    ~reader();
    // What there is since the last call, in order, waiting until there is something; empty: the end. What was
    // answered is taken with the next call.
    boost::asio::awaitable<std::vector<journal_entry_ptr>> next();
    // How many events between the point that was asked for and the first one that is there have been dropped.
    std::uint64_t missing() const;
    void stop();  // next() answers the end

   private:
    friend class event_journal;
    struct state;
    explicit reader(std::shared_ptr<state> s);
    std::shared_ptr<state> state_;
  };
  // Of one session, after `sequence`; nothing: what comes from now on. not_found: nothing is kept of it.
  result<reader> read(const std::string& session_id, std::optional<std::uint64_t> after_sequence);
  // Of all, after `position`.
  reader read_all(std::optional<std::uint64_t> after_position);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace ccbox::server
