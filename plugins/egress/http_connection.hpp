// HTTP/1.0 and 1.1 on a client's connection: CONNECT becomes a tunnel; requests in absolute form are passed
// on one after the other (http_exchange). Every request has a decision of its own. A refusal ends the
// connection: what follows it is thrown away unread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "client_connection.hpp"

namespace ccbox::egress {

task<void> serve_http(std::shared_ptr<client_connection> client);

// A whole response of ours with one line of text, after which the connection is closed. The reason is in the
// status line as well: where CONNECT is refused most clients show nothing else, and a bare "403 Forbidden"
// reads as if the origin had said it.
std::string http_refusal(unsigned status, std::string_view reason, std::string_view line);
std::string http_refusal(const destination& to, const dial_failure& failure, const egress_policy& policy);
// As an answer to `method`: one to HEAD has no body.
std::string for_method(std::string_view method, std::string refusal);

}  // namespace ccbox::egress
