#include "session_events.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace ccbox {

namespace asio = boost::asio;

session_events::session_events(const asio::any_io_executor& strand, const event_bus& bus,
                               std::string session_id)
    : session_id_(std::move(session_id)), to_bus_(bus.publisher()), turn_(strand, 1) {
  turn_.try_send(boost::system::error_code());
}

asio::awaitable<void> session_events::publish(sandbox_event event) {
  struct turn_over {
    session_events& of;
    ~turn_over() { of.turn_.try_send(boost::system::error_code()); }
  };
  event.session_id = session_id_;
  co_await turn_.async_receive(asio::as_tuple(asio::use_awaitable));
  const turn_over over{*this};
  co_await to_bus_(std::move(event));
}

}  // namespace ccbox
