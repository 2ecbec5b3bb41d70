#include "http_exchange.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>

#include "http_connection.hpp"

namespace ccbox::egress {

http_exchange::http_exchange(std::shared_ptr<client_connection> client, request_head request, decision by)
    : client_(std::move(client)),
      session_(client_->session()),
      request_(std::move(request)),
      by_(by),
      body_left_(request_.body_bytes),
      body_done_(request_.body == body_kind::none ||
                 (request_.body == body_kind::length && request_.body_bytes == 0)),
      body_over_(session_.io().executor()),
      started_(std::chrono::steady_clock::now()) {}

task<bool> http_exchange::run() {
  ++session_.count().requests;
  response_head response;
  auto state = head_state::broken;
  for (bool reuse = true;; reuse = false) {
    if (!co_await reach(reuse)) co_return false;
    keep_alive();
    const bool sent = co_await send_request();
    if (!body_done_ && !body_runs_) start_body();
    // What an origin that took only a part of the request has answered counts all the same.
    state = co_await read_final_head(response);
    const bool stale = reused_ && !got_bytes_ && request_.body == body_kind::none &&
                       (state == head_state::nothing || !sent) && !client_->late();
    if (!stale || state == head_state::gone) break;
    drop_origin();
  }
  if (state != head_state::complete) co_return co_await no_answer(state);
  if (response.switches) {
    if (!co_await to_client(write_response_head(response, request_, false))) co_return false;
    client_->unwatch();
    client_->become_tunnel("http", request_.to, by_, {std::move(*origin_), std::move(answer_)});
    co_return false;
  }
  const bool unframed = response.body == response_head::framing::until_close ||
                        (response.body == response_head::framing::chunked && request_.minor_version == 0);
  const bool close = !request_.keep_alive || unframed || !body_done_;
  const bool passed = co_await pass_answer(response, close);
  co_return co_await finish(response, close, passed);
}

task<bool> http_exchange::reach(bool reuse) {
  reused_ = false;
  if (reuse) {
    if (auto idle = session_.origins().take(request_.to)) {
      reused_ = true;
      ++session_.count().origin_reuses;
      origin_ = std::make_shared<stream_socket>(std::move(*idle));
    }
  }
  if (!reused_) {
    auto outcome = co_await client_->dial(request_.to);
    if (const auto* failure = std::get_if<dial_failure>(&outcome)) {
      if (failure->what == dial_failure::kind::cancelled) co_return false;
      session_.not_reached("http", request_.to, by_, *failure);
      auto answer = http_refusal(request_.to, *failure, session_.policy());
      co_await client_->say_and_close(for_method(request_.method, std::move(answer)));
      co_return false;
    }
    auto& made = std::get<dialled>(outcome);
    origin_ = std::make_shared<stream_socket>(std::move(made.socket));
    answer_ = std::move(made.early);
  }
  client_->use_origin(origin_);
  co_return true;
}

task<bool> http_exchange::send_request() {
  auto out = write_request_head(request_);
  // What of the body is here already goes along.
  if (!body_done_ && request_.body == body_kind::length) {
    auto& input = client_->input();
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, input.size()));
    out.append(input, 0, here);
    input.erase(0, here);
    body_left_ -= here;
    body_done_ = body_left_ == 0;
  }
  if (body_done_) client_->watch(session_.settings().half_closed_timeout);
  bytes_up_ += out.size();
  co_return co_await send_all(*origin_, out);
}

void http_exchange::start_body() {
  body_runs_ = true;
  asio::co_spawn(session_.io().executor(), send_body(), [self = shared_from_this()](std::exception_ptr) {
    self->body_runs_ = false;
    self->body_over_.set(true);
  });
}

task<void> http_exchange::send_body() {
  while (!body_done_) {
    if (client_->input().empty()) {
      const bool more = co_await client_->read_more();
      if (!more) break;
    }
    const bool sent = co_await send_body_part();
    if (!sent) co_return;
    keep_alive();
  }
  if (body_done_) {
    client_->watch(session_.settings().half_closed_timeout);
  } else if (!client_->late() && origin_->is_open()) {
    // Half a body is none: the origin must not take it for the whole. An end that stop_body() made is no end.
    reset_on_close(origin_->native_handle());
    drop_origin();
  }
}

task<bool> http_exchange::send_body_part() {
  auto& input = client_->input();
  std::string out;
  bool over = false;
  if (request_.body == body_kind::length) {
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, input.size()));
    out.assign(input, 0, here);
    input.erase(0, here);
    body_left_ -= here;
    over = body_left_ == 0;
  } else {
    std::string data;
    const auto step = decoder_.feed(input, data);
    input.erase(0, step.consumed);
    append_chunk(out, data);
    over = step.now == chunked_decoder::state::done;
    if (over) out += last_chunk;
    body_malformed_ = step.now == chunked_decoder::state::malformed;
  }
  if (body_malformed_) {
    reset_on_close(origin_->native_handle());
    drop_origin();
    co_return false;
  }
  bytes_up_ += out.size();
  const bool sent = co_await send_all(*origin_, out);
  body_done_ = over && sent;
  co_return sent;
}

task<void> http_exchange::stop_body() {
  if (!body_runs_) co_return;
  drop_origin();
  boost::system::error_code ignored;
  client_->socket().cancel(ignored);
  co_await body_over_.get();
}

task<bool> http_exchange::receive() {
  auto& scratch = session_.io().scratch();
  while (origin_->is_open()) {
    const auto n = receive_now(origin_->native_handle(), scratch.data(), scratch.size());
    if (n > 0) {
      got_bytes_ = true;
      answer_.append(scratch.data(), static_cast<std::size_t>(n));
      keep_alive();
      co_return true;
    }
    if (n == 0 || !would_block(errno)) co_return false;
    const auto [stopped] = co_await origin_->async_wait(asio::socket_base::wait_read, no_throw);
    if (stopped) co_return false;
  }
  co_return false;
}

task<http_exchange::head_state> http_exchange::read_head(response_head& response) {
  std::size_t scanned = 0;
  for (;;) {
    const auto found = find_head_end(answer_, scanned);
    if (std::holds_alternative<http_error>(found)) co_return head_state::malformed;
    if (const auto length = std::get<std::size_t>(found); length > 0) {
      auto read = parse_response_head(std::string_view(answer_).substr(0, length), request_);
      answer_.erase(0, length);
      if (std::holds_alternative<http_error>(read)) co_return head_state::malformed;
      response = std::move(std::get<response_head>(read));
      co_return head_state::complete;
    }
    const bool had = !answer_.empty();
    const bool more = co_await receive();
    if (more) continue;
    if (client_->gone()) co_return head_state::gone;
    co_return had ? head_state::broken : head_state::nothing;
  }
}

task<http_exchange::head_state> http_exchange::read_final_head(response_head& response) {
  for (;;) {
    const auto state = co_await read_head(response);
    if (state != head_state::complete || response.switches || response.status >= 200) co_return state;
    if (request_.minor_version == 0) continue;
    if (!co_await to_client(write_response_head(response, request_, false))) co_return head_state::gone;
  }
}

task<bool> http_exchange::pass_answer(const response_head& response, bool close) {
  auto out = write_response_head(response, request_, close);
  switch (response.body) {
    case response_head::framing::none:
      return pass_length(std::move(out), 0);
    case response_head::framing::length:
      return pass_length(std::move(out), response.body_bytes);
    case response_head::framing::chunked:
      return pass_chunks(std::move(out));
    case response_head::framing::until_close:
      break;
  }
  return pass_until_close(std::move(out));
}

task<bool> http_exchange::pass_length(std::string out, std::uint64_t left) {
  for (;;) {
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(left, answer_.size()));
    left -= here;
    if (out.empty() && here == answer_.size()) {
      out.swap(answer_);
    } else {
      out.append(answer_, 0, here);
      answer_.erase(0, here);
    }
    if (!co_await to_client(out)) co_return false;
    if (left == 0) co_return true;
    out.clear();
    if (!co_await receive()) co_return false;
  }
}

task<bool> http_exchange::pass_chunks(std::string out) {
  chunked_decoder decoder;
  std::string data;
  for (;;) {
    const auto step = decoder.feed(answer_, data);
    answer_.erase(0, step.consumed);
    if (step.now == chunked_decoder::state::malformed) co_return false;
    const bool over = step.now == chunked_decoder::state::done;
    if (request_.minor_version == 0) {
      out += data;
    } else {
      append_chunk(out, data);
      if (over) out += last_chunk;
    }
    if (!out.empty()) {
      const bool sent = co_await to_client(out);
      if (!sent) co_return false;
    }
    if (over) co_return true;
    out.clear();
    data.clear();
    if (!co_await receive()) co_return false;
  }
}

task<bool> http_exchange::pass_until_close(std::string out) {
  bool more = true;
  while (more) {
    out += answer_;
    answer_.clear();
    const bool sent = co_await to_client(out);
    if (!sent) co_return false;
    out.clear();
    more = co_await receive();
  }
  // In order only if the origin said so, not if it was reset or the limit passed.
  const bool in_time = !client_->late() && !client_->gone() && origin_->is_open();
  co_return in_time&& look(origin_->native_handle()) == liveness::ended;
}

task<bool> http_exchange::to_client(std::string_view bytes) {
  bytes_down_ += bytes.size();
  const bool sent = co_await send_all(client_->socket(), bytes);
  keep_alive();
  co_return sent && !client_->gone();
}

task<bool> http_exchange::no_answer(head_state why) {
  const bool too_late = client_->late();
  co_await stop_body();
  drop_origin();
  record();
  if (client_->gone() || why == head_state::gone) co_return false;
  const auto name = authority_text(request_.to);
  std::string answer;
  if (body_malformed_)
    answer = http_refusal(400, "malformed", "the request's chunked body is malformed");
  else if (too_late)
    answer = http_refusal(504, "origin-timeout", name + " did not answer in time");
  else if (why == head_state::malformed)
    answer =
        http_refusal(502, "origin-malformed", name + " answered with something that is no safe HTTP/1.1");
  else
    answer = http_refusal(502, "origin-closed", name + " closed the connection without an answer");
  co_await client_->say_and_close(for_method(request_.method, std::move(answer)));
  co_return false;
}

task<bool> http_exchange::finish(const response_head& response, bool close, bool passed) {
  const bool body_was_done = body_done_;
  co_await stop_body();
  client_->unwatch();
  if (passed && body_was_done && response.keep_alive && answer_.empty() && origin_->is_open() &&
      !session_.closed()) {
    client_->use_origin(nullptr);
    session_.origins().put(request_.to, std::move(*origin_));
  } else {
    drop_origin();
  }
  record();
  if (passed && !close && body_was_done && !client_->gone()) co_return true;
  if (!client_->gone() && passed) {
    co_await client_->say_and_close({});
  } else if (client_->socket().is_open()) {
    reset_on_close(client_->socket().native_handle());
    client_->abort();
  }
  co_return false;
}

void http_exchange::keep_alive() {
  if (!client_->late()) client_->limit(session_.settings().idle_timeout);
}

void http_exchange::drop_origin() {
  client_->use_origin(nullptr);
  boost::system::error_code ignored;
  if (origin_) origin_->close(ignored);
}

void http_exchange::record() {
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started_);
  session_.done("http", request_.to, by_, {bytes_up_, bytes_down_, took});
}

}  // namespace ccbox::egress
