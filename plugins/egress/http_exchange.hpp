// One absolute-form request and its answer: written anew in both directions, so that what policy saw is what
// the origin sees. The request's body, if it has one, flows beside the answer; an answer that comes before
// the body has ended is passed on and ends the client's connection.
//
// A connection from the pool that turns out dead before it said a byte is replaced once, for a request
// without a body. An answer that breaks off breaks off at the client too (reset), never ends early in order.
//
// Alive while it runs. On the session's worker.
#pragma once

#include <memory>
#include <string>

#include "body_framing.hpp"
#include "client_connection.hpp"
#include "eventual.hpp"
#include "request_head.hpp"
#include "response_head.hpp"

namespace ccbox::egress {

class http_exchange : public std::enable_shared_from_this<http_exchange> {
 public:
  http_exchange(std::shared_ptr<client_connection> client, request_head request, decision by);
  // True: the client's connection is ready for its next request. Otherwise it has had its answer.
  task<bool> run();

 private:
  enum class head_state { complete, nothing, broken, malformed, gone };
  task<bool> reach(bool reuse);
  task<bool> send_request();
  task<void> send_body();
  task<bool> send_body_part();
  void start_body();
  task<void> stop_body();

  task<bool> receive();  // appends to answer_
  task<head_state> read_head(response_head& response);
  task<head_state> read_final_head(response_head& response);
  task<bool> pass_answer(const response_head& response, bool close);
  task<bool> pass_length(std::string out, std::uint64_t left);
  task<bool> pass_chunks(std::string out);
  task<bool> pass_until_close(std::string out);
  task<bool> to_client(std::string_view bytes);

  task<bool> no_answer(head_state why);
  task<bool> finish(const response_head& response, bool close, bool passed);
  void keep_alive();  // pushes the idle limit away
  void drop_origin();
  void record();

  const std::shared_ptr<client_connection> client_;
  egress_session& session_;
  const request_head request_;
  const decision by_;
  std::shared_ptr<stream_socket> origin_;
  std::string answer_;  // read from the origin and not used
  bool reused_ = false, got_bytes_ = false;

  // The request's body.
  chunked_decoder decoder_;
  std::uint64_t body_left_ = 0;
  bool body_done_ = false, body_runs_ = false, body_malformed_ = false;
  eventual<bool> body_over_;
  std::chrono::steady_clock::time_point started_;
  std::uint64_t bytes_up_ = 0, bytes_down_ = 0;
};

}  // namespace ccbox::egress
