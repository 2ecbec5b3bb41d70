// The veneer alone: a whole egress plugin in C++17 and later.
#include "ccbox/plugin.hpp"

namespace {

class smallest : public ccbox::plugin::egress {
 public:
  smallest(const ccbox::plugin::host& host, ccbox::plugin::options& options)
      : host_(host), strict_(options.boolean("strict", true)) {}

  void check_rule(const ccbox::plugin::egress_rule& rule) override {
    if (rule.pattern.empty()) throw ccbox::plugin::failure(CCBOX_INVALID, "an empty pattern");
  }

  void open(const ccbox::plugin::egress_request& request, ccbox::plugin::egress_sink& sink) override {
    auto settings = request.settings();
    settings.refuse_unknown();
    for (const auto& rule : request.rules())
      check_rule(rule);
    for (const auto& listener : request.listeners())
      sink.endpoint(listener.kind, listener.address);
    sink.environment("HTTP_PROXY", request.net_connect());
    host_.emit(request.session_id(), "denial", "{}");
  }

  ccbox::plugin::egress_answer decide(std::string_view, std::string_view host, std::uint16_t) override {
    ccbox::plugin::egress_answer answer;
    answer.allowed = !strict_;
    answer.text = host;
    return answer;
  }

  void counters(const ccbox::plugin::counter_sink& each) override { each("smallest_total", "", 0); }
  void close(std::string_view) override {}

 private:
  const ccbox::plugin::host host_;
  const bool strict_;
};

}  // namespace

CCBOX_PLUGIN(smallest, "smallest_egress", "1")
