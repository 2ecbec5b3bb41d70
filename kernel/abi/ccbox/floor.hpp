// The floor of an enclosure: what a backend asks ccbox-init to put under its commands so that name rules
// hold.
//
// A plan whose argv ends in `ccbox-init --channel N --floor F --broker B` passes in F a sealed file with
// these orders, encoded, and in B one end of a connected Unix stream socket. Before its first command init
//  1. enters a Landlock domain in which nothing can be created, written, truncated, removed, renamed or
//  linked
//     but below the `open` paths (a device or pipe that is open already is none of the domain's affair);
//  2. tries to create a file in each `guarded` directory, and ends the enclosure if that succeeds or fails in
//     any other way than with EACCES;
//  3. installs `filter` with SECCOMP_FILTER_FLAG_NEW_LISTENER, on top of the base filter of ccbox, and sends
//     one byte with two descriptors over B: the listener and its mount namespace;
//  4. waits until a byte comes back: from then on whoever holds the listener answers; then closes B.
// With `--try ORDINARY FORBIDDEN` after them, init runs no command and waits for no order: it does all that
// without the base filter, makes and removes a file ORDINARY in each guarded directory, is refused FORBIDDEN
// with EACCES, and ends with 0. Whatever fails ends the enclosure with a line on standard error, before
// anything has run. What the holder of the listener does not grant, or fails to, stays refused.
//
// Encoding: lists as u32 count + strings, strings as u32 length + bytes, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ccbox {

struct floor_orders {
  std::vector<std::string> open;     // paths inside; one that does not exist is none
  std::vector<std::string> guarded;  // directories inside; none of `open` may be, contain or alias one
  std::string filter;                // struct sock_filter[]
};

namespace floor_detail {

inline void put(std::string& out, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8)
    out += static_cast<char>(number >> shift & 0xff);
}

inline void put(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

inline bool take(std::string_view& from, std::uint32_t& number) {
  if (from.size() < 4) return false;
  number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  from.remove_prefix(4);
  return true;
}

inline bool take(std::string_view& from, std::string& text) {
  std::uint32_t size = 0;
  if (!take(from, size) || size > from.size()) return false;
  text = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

inline bool take(std::string_view& from, std::vector<std::string>& list) {
  std::uint32_t count = 0;
  if (!take(from, count) || count > from.size() / 4) return false;
  list.resize(count);
  for (auto& text : list)
    if (!take(from, text)) return false;
  return true;
}

}  // namespace floor_detail

inline std::string encode(const floor_orders& orders) {
  std::string out;
  for (const auto* list : {&orders.open, &orders.guarded}) {
    floor_detail::put(out, static_cast<std::uint32_t>(list->size()));
    for (const auto& path : *list)
      floor_detail::put(out, path);
  }
  floor_detail::put(out, orders.filter);
  return out;
}

// Nothing: bytes too few or too many.
inline std::optional<floor_orders> decode_floor(std::string_view bytes) {
  floor_orders orders;
  if (!floor_detail::take(bytes, orders.open) || !floor_detail::take(bytes, orders.guarded) ||
      !floor_detail::take(bytes, orders.filter) || !bytes.empty())
    return std::nullopt;
  return orders;
}

}  // namespace ccbox
