// Events on a WebSocket: of one session, or of all.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/json.hpp>

#include "service.hpp"

namespace ccbox::server {

namespace json = boost::json;
namespace asio = boost::asio;

namespace {

constexpr std::size_t message_bytes = 64 << 10;  // of events that are sent together

bool is_output(const sandbox_event& event) {
  return event.type == sandbox_event_type::stdout_data || event.type == sandbox_event_type::stderr_data;
}

// One event a line.
asio::awaitable<void> send_events(event_journal::reader& from, message_socket& to, bool with_output) {
  if (from.missing() > 0) {
    const auto gap = json::serialize(json::object{{"type", "gap"}, {"missing", from.missing()}}) + "\n";
    const bool sent = co_await to.write(gap, false);
    if (!sent) co_return;
  }
  while (true) {
    const auto entries = co_await from.next();
    if (entries.empty()) break;
    std::string text;
    for (const auto& entry : entries) {
      if (!with_output && is_output(entry->event)) continue;
      auto event = to_json(entry->event);
      event.get_object()["position"] = entry->position;
      text += json::serialize(event) + "\n";
      if (text.size() < message_bytes) continue;
      const bool sent = co_await to.write(std::exchange(text, {}), false);
      if (!sent) co_return;
    }
    if (text.empty()) continue;
    const bool sent = co_await to.write(std::move(text), false);
    if (!sent) co_return;
  }
  co_await to.close(1000, "");
}

// Whoever watches says nothing; only its end is of interest.
asio::awaitable<void> ignore_input(event_journal::reader& reader, message_socket& socket) {
  bool there = true;
  while (there) {
    const auto message = co_await socket.read();
    there = message.has_value();
  }
  reader.stop();
}

asio::awaitable<void> watch(std::shared_ptr<event_journal::reader> from, bool with_output,
                            message_socket& socket) {
  using namespace asio::experimental::awaitable_operators;
  co_await (send_events(*from, socket, with_output) && ignore_input(*from, socket));
}

result<bool> output_wanted(const api_request& request) {
  const auto found = request.query.find("output");
  if (found == request.query.end() || found->second == "1") return true;
  if (found->second == "0") return false;
  return error{error_code::invalid_argument,
               "parameter output: " + quoted(found->second.substr(0, 200)) + " is neither 0 nor 1", ""};
}

asio::awaitable<result<socket_handler>> events(service s, api_request request, bool of_all) {
  if (auto fine = only_parameters(request, {"after", "output"}); !fine) co_return fine.error();
  const auto after = number_parameter(request, "after", UINT64_MAX);
  if (!after) co_return after.error();
  const auto output = output_wanted(request);
  if (!output) co_return output.error();
  std::shared_ptr<event_journal::reader> from;
  if (of_all) {
    from = std::make_shared<event_journal::reader>(s.journal.read_all(*after));
  } else {
    auto one = s.journal.read(request.captured.at("id"), *after);
    if (!one) co_return one.error();
    from = std::make_shared<event_journal::reader>(std::move(*one));
  }
  co_return socket_handler(
      [from, with_output = *output](message_socket& socket) { return watch(from, with_output, socket); });
}

}  // namespace

void add_event_routes(router& routes, const service& s) {
  routes.add_socket("/v1/events", [s](const api_request& request) { return events(s, request, true); });
  routes.add_socket("/v1/sandboxes/{id}/events",
                    [s](const api_request& request) { return events(s, request, false); });
}

}  // namespace ccbox::server
