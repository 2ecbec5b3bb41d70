// Commands in a sandbox: started and left to the events, or with their streams on a WebSocket.
#include <signal.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#include "exec_request_json.hpp"
#include "output_pump.hpp"
#include "service.hpp"

namespace ccbox::server {

namespace json = boost::json;
namespace asio = boost::asio;

namespace {

constexpr auto waiting = asio::as_tuple(asio::use_awaitable);
constexpr std::uint64_t most_wait_ms = 60'000;
constexpr char stdout_mark = 1, stderr_mark = 2;  // the first byte of a binary message

result<std::uint64_t> exec_id_of(const api_request& request) {
  const std::string& text = request.captured.at("exec");
  api_request asked;
  asked.query["exec"] = text;
  const auto number = number_parameter(asked, "exec", UINT64_MAX);
  if (!number)
    return error{error_code::not_found, "there is no command " + quoted(text.substr(0, 200)),
                 "an execId is a number"};
  return **number;
}

json::object started_json(const exec_handle& handle) {
  return {{"execId", handle.exec_id}, {"pid", handle.pid_inside}};
}

// What a command reads: the write end of its pipe, or its terminal.
class input_stream {
 public:
  input_stream(const asio::any_io_executor& executor, unique_fd fd) : out_(executor) {
    if (fd) out_.assign(fd.release());
  }
  // Waits while the command does not read. False: nobody does any more.
  asio::awaitable<bool> write(const std::string& bytes) {
    if (!out_.is_open()) co_return false;
    const auto [failed, count] = co_await asio::async_write(out_, asio::buffer(bytes), waiting);
    co_return !failed;
  }
  void close() {
    boost::system::error_code ignored;
    out_.close(ignored);
  }

 private:
  asio::posix::stream_descriptor out_;
};

asio::awaitable<void> feed(asio::any_io_executor executor, unique_fd fd, std::string bytes) {
  input_stream to(executor, std::move(fd));
  [[maybe_unused]] const bool taken = co_await to.write(bytes);
}

// Its standard input, unless it comes from a terminal.
result<unique_fd> give_input(exec_request& request) {
  auto made = make_pipe();
  if (!made) return made.error();
  request.descriptors[0] = std::move(made->reader);
  return std::move(made->writer);
}

asio::awaitable<api_response> start(service s, api_request request) {
  auto wanted = wanted_command_from_json(request.body);
  if (!wanted) co_return error_response(wanted.error());
  if (wanted->input && wanted->request.pty)
    co_return error_response({error_code::invalid_argument, "input: the command reads from its terminal",
                              "use the WebSocket, or leave out pty"});
  const auto found = session_of(s, request);
  if (!found) co_return error_response(found.error());
  unique_fd writer;
  if (wanted->input) {
    auto made = give_input(wanted->request);
    if (!made) co_return error_response(made.error());
    writer = std::move(*made);
  }
  const auto started = co_await (*found)->exec(std::move(wanted->request));
  if (!started) co_return error_response(started.error());
  if (writer)  // a command that does not read does not hold up the answer
    asio::co_spawn(s.front, feed(s.front, std::move(writer), std::move(*wanted->input)), asio::detached);
  co_return json_response(201, started_json(*started));
}

// Answers within a bounded time: a client that has gone away holds nothing up for ever.
asio::awaitable<api_response> wait(service s, api_request request) {
  using namespace asio::experimental::awaitable_operators;
  if (auto fine = only_parameters(request, {"waitMs"}); !fine) co_return error_response(fine.error());
  const auto patience = number_parameter(request, "waitMs", most_wait_ms);
  if (!patience) co_return error_response(patience.error());
  const auto found = session_of(s, request);
  if (!found) co_return error_response(found.error());
  const auto id = exec_id_of(request);
  if (!id) co_return error_response(id.error());
  asio::steady_timer limit(s.front, std::chrono::milliseconds(patience->value_or(0)));
  const auto first = co_await ((*found)->wait(*id) || limit.async_wait(waiting));
  json::object out{{"execId", *id}, {"running", first.index() == 1}};
  if (first.index() == 0) {
    const auto& status = std::get<0>(first);
    if (!status) co_return error_response(status.error());
    out["exitCode"] = status->code();
    if (status->signalled) out["signal"] = ::sigabbrev_np(status->value);
  }
  co_return json_response(200, out);
}

asio::awaitable<api_response> signal(service s, api_request request) {
  const auto number = signal_from_json(request.body);
  if (!number) co_return error_response(number.error());
  const auto found = session_of(s, request);
  if (!found) co_return error_response(found.error());
  const auto id = exec_id_of(request);
  if (!id) co_return error_response(id.error());
  const auto sent = co_await (*found)->signal(*id, *number);
  if (!sent) co_return error_response(sent.error());
  co_return api_response{204, "", ""};
}

asio::awaitable<api_response> resize(service s, api_request request) {
  const auto size = window_size_from_json(request.body);
  if (!size) co_return error_response(size.error());
  const auto found = session_of(s, request);
  if (!found) co_return error_response(found.error());
  const auto id = exec_id_of(request);
  if (!id) co_return error_response(id.error());
  const auto done = co_await (*found)->resize(*id, *size);
  if (!done) co_return error_response(done.error());
  co_return api_response{204, "", ""};
}

// One command whose streams are on a socket.
struct streamed_command {
  service s;
  message_socket& socket;
  std::shared_ptr<session> where;
  event_journal::reader output;
  input_stream input;
  exec_handle handle;

  static std::string text_of(json::object message) { return json::serialize(message); }

  // Until the command has ended and everything was sent, or the peer is gone. True: it has ended.
  asio::awaitable<bool> pass_output() {
    while (true) {
      const auto entries = co_await output.next();
      if (entries.empty()) co_return true;  // the session is gone
      for (const auto& entry : entries) {
        const sandbox_event& event = entry->event;
        if (event.exec_id != handle.exec_id) continue;
        if (event.type == sandbox_event_type::stdout_data || event.type == sandbox_event_type::stderr_data) {
          const char mark = event.type == sandbox_event_type::stdout_data ? stdout_mark : stderr_mark;
          const bool sent = co_await socket.write(mark + event.data, true);
          if (!sent) co_return false;
        } else if (event.type == sandbox_event_type::exit) {
          const auto text = text_of({{"type", "exit"}, {"exitCode", event.exit_code}});
          const bool sent = co_await socket.write(text, false);
          if (sent) co_await socket.close(1000, "");
          co_return true;
        }
      }
    }
  }

  asio::awaitable<result<void>> follow(const std::string& text) {
    const auto instruction = exec_instruction_from_json(text);
    if (!instruction) co_return instruction.error();
    if (std::holds_alternative<end_of_input>(*instruction)) {
      input.close();
      co_return result<void>();
    }
    if (const auto* asked = std::get_if<send_signal>(&*instruction))
      co_return co_await where->signal(handle.exec_id, asked->number);
    co_return co_await where->resize(handle.exec_id, std::get<window_size>(*instruction));
  }

  // Until the peer is gone, or says what is no instruction.
  asio::awaitable<void> take_input() {
    while (true) {
      const auto message = co_await socket.read();
      if (!message) break;
      if (message->binary) {
        const bool taken = co_await input.write(message->data);
        if (!taken) input.close();  // it reads no more; its end is yet to come
        continue;
      }
      const auto done = co_await follow(message->data);
      if (!done && done.error().code == error_code::invalid_argument) {
        co_await socket.close(1008, done.error().what);
        break;
      }
    }
    input.close();
    output.stop();
  }
};

asio::awaitable<void> run_streamed(service s, std::shared_ptr<session> where, message_socket& socket) {
  using namespace asio::experimental::awaitable_operators;
  const auto first = co_await socket.read();
  if (!first) co_return;
  auto wanted = wanted_command_from_json(first->data);
  std::optional<error> failure;
  if (!wanted)
    failure = wanted.error();
  else if (wanted->input)
    failure = error{error_code::invalid_argument, "input: send it in binary messages", ""};
  unique_fd writer;
  if (!failure && !wanted->request.pty) {
    auto made = give_input(wanted->request);
    if (made)
      writer = std::move(*made);
    else
      failure = made.error();
  }
  auto output = s.journal.read(where->handle().session_id, std::nullopt);
  if (!failure && !output) failure = output.error();
  std::optional<exec_handle> handle;
  if (!failure) {
    auto started = co_await where->exec(std::move(wanted->request));
    if (started)
      handle = std::move(*started);
    else
      failure = started.error();
  }
  if (failure) {
    const auto text = streamed_command::text_of({{"type", "error"}, {"error", to_json(*failure)}});
    const bool sent = co_await socket.write(text, false);
    if (sent) co_await socket.close(1000, "");
    co_return;
  }
  auto reads_from = handle->pty_master ? std::move(handle->pty_master) : std::move(writer);
  streamed_command command{
      s, socket, where, std::move(*output), input_stream(s.front, std::move(reads_from)), std::move(*handle)};
  auto hello = started_json(command.handle);
  hello["type"] = "started";
  bool ended = false;
  const auto greeting = streamed_command::text_of(hello);
  const bool greeted = co_await socket.write(greeting, false);
  if (greeted) ended = co_await (command.pass_output() && command.take_input());
  // Whoever watched it has gone: what a closed terminal does to a command.
  if (!ended) [[maybe_unused]]
    const auto told = co_await where->signal(command.handle.exec_id, SIGHUP);
}

asio::awaitable<result<socket_handler>> streamed(service s, api_request request) {
  const auto found = session_of(s, request);
  if (!found) co_return found.error();
  co_return socket_handler(
      [s, where = *found](message_socket& socket) { return run_streamed(s, where, socket); });
}

}  // namespace

void add_exec_routes(router& routes, const service& s) {
  const std::string base = "/v1/sandboxes/{id}/exec";
  routes.add("POST", base, [s](const api_request& request) { return start(s, request); });
  routes.add_socket(base, [s](const api_request& request) { return streamed(s, request); });
  routes.add("GET", base + "/{exec}", [s](const api_request& request) { return wait(s, request); });
  routes.add("POST", base + "/{exec}/signal", [s](const api_request& request) { return signal(s, request); });
  routes.add("POST", base + "/{exec}/resize", [s](const api_request& request) { return resize(s, request); });
}

}  // namespace ccbox::server
