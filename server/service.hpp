// What the handlers of the API work on, and the routes that they make.
//
// Handlers run on the server's one thread (`front`); launches and what may take long run on `pool`.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>

#include "event_journal.hpp"
#include "http_server.hpp"
#include "router.hpp"
#include "sandbox_manager.hpp"
#include "sandbox_port.hpp"
#include "sandbox_setup.hpp"
#include "startup_line.hpp"

namespace ccbox::server {

struct service {
  boost::asio::any_io_executor front, pool;
  const sandbox_setup& setup;
  const sandbox_status& status;
  sandbox_port& port;
  event_journal& journal;
};

void add_host_routes(router& routes, const service& s);     // healthz, probe, plugins
void add_sandbox_routes(router& routes, const service& s);  // launch, list, inspect, destroy
void add_exec_routes(router& routes, const service& s);     // commands, plain and streamed
void add_event_routes(router& routes, const service& s);    // of a session, of all

// The session that {id} names, or not_found.
result<std::shared_ptr<session>> session_of(const service& s, const api_request& request);

// Query parameters: invalid_argument for what is not asked for and what is no number.
result<void> only_parameters(const api_request& request, std::initializer_list<std::string_view> known);
result<std::optional<std::uint64_t>> number_parameter(const api_request& request, const std::string& name,
                                                      std::uint64_t most);

}  // namespace ccbox::server
