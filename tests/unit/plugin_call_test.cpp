#include "plugin_call.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace ccbox;

TEST_CASE("a text that claims more than its buffer is seen, never read past its end") {
  text_buffer text;
  text.set_length(std::size_t{1} << 40);
  CHECK(text.overrun());
  CHECK(text.view().size() == text.handle().capacity);
}

TEST_CASE("what a plugin throws is a failure with a text") {
  text_buffer text;
  CHECK(call_plugin([]() -> ccbox_status { throw std::runtime_error("x"); }, text) == CCBOX_FAILED);
  CHECK(text.view() == "an exception left the plugin");
  CHECK(call_plugin([] { return ccbox_status{CCBOX_TOO_LARGE}; }, text) == CCBOX_TOO_LARGE);
}

TEST_CASE("an assigned text is cut to the buffer") {
  text_buffer text;
  text.assign(std::string(5000, 'x'));
  CHECK_FALSE(text.overrun());
  CHECK(text.view().size() == text.handle().capacity);
}
