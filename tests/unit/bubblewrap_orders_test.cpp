// What the plugin tells init and the broker: bytes that say one thing, and say it whole.
#include <doctest/doctest.h>

#include <string>

#include "ccbox/floor.hpp"
#include "plugins/bubblewrap/broker_orders.hpp"

using namespace ccbox;
using namespace ccbox::bubblewrap;

namespace {

broker_orders some_broker_orders() {
  broker_orders orders;
  orders.open = {"/proc", "/dev", std::string("/a\0b", 4), ""};
  orders.mounts = {{"/w", "/home/u/w"}, {"/", "/"}};
  orders.anchors = {{"/w", {{".env", "secrets"}, {"c", "", name_rule::condition::git_config}}, {"*.sample"}},
                    {"/", {}, {}}};
  return orders;
}

floor_orders some_floor_orders() {
  return {{"/proc", "/tmp"}, {"/w", "new\nline", "\xff"}, std::string("\0\1\2\3\4\5\6\7", 8)};
}

template <class Decode>
void nothing_else_decodes(const std::string& bytes, Decode decode) {
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_MESSAGE(!decode(bytes.substr(0, size)), "the first " << size << " bytes");
  CHECK_FALSE(decode(bytes + '\0'));
  CHECK_FALSE(decode(bytes + bytes));
}

// A count or length of this size anywhere takes no memory and is refused.
template <class Decode>
void counts_that_lie(const std::string& bytes, Decode decode) {
  for (std::size_t at = 0; at + 4 <= bytes.size(); ++at) {
    auto lying = bytes;
    lying.replace(at, 4, "\xff\xff\xff\xff", 4);
    (void)decode(lying);  // a text may hold anything: what counts is that it comes back
  }
  CHECK_FALSE(decode(std::string(4, '\xff')));
}

}  // namespace

TEST_CASE("the broker's orders come back as they were, and nothing shorter or longer is taken") {
  const auto orders = some_broker_orders();
  const auto bytes = encode(orders);
  const auto back = decode_broker_orders(bytes);
  REQUIRE(back.has_value());
  CHECK(back->open == orders.open);
  REQUIRE(back->mounts.size() == 2);
  CHECK(back->mounts[0].guest == "/w");
  CHECK(back->mounts[0].host == "/home/u/w");
  REQUIRE(back->anchors.size() == 2);
  CHECK(back->anchors[0].guest == "/w");
  REQUIRE(back->anchors[0].deny.size() == 2);
  CHECK(back->anchors[0].deny[0].glob == ".env");
  CHECK(back->anchors[0].deny[0].reason == "secrets");
  CHECK(back->anchors[0].deny[0].when == name_rule::condition::none);
  CHECK(back->anchors[0].deny[1].when == name_rule::condition::git_config);
  CHECK(back->anchors[0].exempt == orders.anchors[0].exempt);
  CHECK(back->anchors[1].deny.empty());
  CHECK(encode(*back) == bytes);
  nothing_else_decodes(bytes, decode_broker_orders);
  counts_that_lie(bytes, decode_broker_orders);
}

TEST_CASE("the floor's orders come back as they were, and nothing shorter or longer is taken") {
  const auto orders = some_floor_orders();
  const auto bytes = encode(orders);
  const auto back = decode_floor(bytes);
  REQUIRE(back.has_value());
  CHECK(back->open == orders.open);
  CHECK(back->guarded == orders.guarded);
  CHECK(back->filter == orders.filter);
  CHECK(encode(*back) == bytes);
  nothing_else_decodes(bytes, decode_floor);
  counts_that_lie(bytes, decode_floor);
}

TEST_CASE("ten thousand rules are orders like any other") {
  broker_orders orders;
  orders.anchors.push_back({"/w", {}, {}});
  for (int i = 0; i < 10000; ++i)
    orders.anchors[0].deny.push_back({"**/d" + std::to_string(i) + "/*", "reason"});
  const auto back = decode_broker_orders(encode(orders));
  REQUIRE(back.has_value());
  CHECK(back->anchors[0].deny.size() == 10000);
  CHECK(back->anchors[0].deny.back().glob == "**/d9999/*");
}
