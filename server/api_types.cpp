#include "api_types.hpp"

#include <boost/json.hpp>

#include "sandbox_handle.hpp"

namespace ccbox::server {

api_response json_response(unsigned status, const boost::json::value& body) {
  return {status, boost::json::serialize(body) + "\n"};
}

api_response error_response(const error& e) {
  return json_response(status_of(e.code), boost::json::object{{"error", to_json(e)}});
}

unsigned status_of(error_code code) {
  switch (code) {
    case error_code::invalid_argument:
      return 400;
    case error_code::not_found:
      return 404;
    case error_code::conflict:
    case error_code::illegal_state:
      return 409;
    case error_code::permission_denied:
      return 403;
    case error_code::unavailable:
      return 503;
    case error_code::unenforceable:
      return 422;
    case error_code::too_large:
      return 413;
    case error_code::timeout:
      return 504;
    case error_code::failed:
      break;
  }
  return 500;
}

}  // namespace ccbox::server
