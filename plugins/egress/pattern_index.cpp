#include "pattern_index.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ccbox::egress {

namespace {

constexpr std::size_t max_labels = 127;  // of a name of 253 bytes
constexpr std::uint32_t no_node = 0xffffffff;

std::uint64_t mixed(std::uint64_t value) {
  value *= 0x9e3779b97f4a7c15U;
  return value ^ value >> 32;
}

std::uint64_t hash_bytes(const char* data, std::size_t size) {
  std::uint64_t out = size, word = 0;
  for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
    std::memcpy(&word, data, sizeof word);
    out = mixed(out ^ word);
  }
  word = 0;
  for (std::size_t i = 0; i < size; ++i)
    word = word << 8 | static_cast<unsigned char>(data[i]);
  return mixed(out ^ word);
}

std::uint64_t salted(domain_pattern::form shape, std::uint64_t hash) {
  return mixed(hash + 1 + static_cast<std::uint64_t>(shape));
}

std::uint32_t upper_half(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

// A name cut into labels, with the hash of every run of labels that it begins with and that it ends in. One
// pass over its bytes serves all look-ups.
class pattern_index::hashed_name {
 public:
  explicit hashed_name(std::string_view name) : name_(name) {
    heads_[0] = 0;
    for (std::size_t start = 0; start <= name.size() && count_ < max_labels; ++count_) {
      auto end = start;
      while (end < name.size() && name[end] != '.')
        ++end;
      starts_[count_] = start;
      tails_[count_] = hash_bytes(name.data() + start, end - start);
      heads_[count_ + 1] = mixed(heads_[count_] + tails_[count_]);
      start = end + 1;
    }
    tails_[count_] = 0;
    for (std::size_t i = count_; i-- > 0;)
      tails_[i] = mixed(tails_[i + 1] * 3 + tails_[i]);
  }

  std::size_t count() const { return count_; }
  std::uint64_t hash() const { return tails_[0]; }
  std::uint64_t head_hash() const { return heads_[count_]; }
  key exact() const { return {form::exact, name_, {}, salted(form::exact, tails_[0])}; }
  key suffix(std::size_t label) const {
    return {form::subdomains, name_.substr(starts_[label]), {}, salted(form::subdomains, tails_[label])};
  }
  // The label in the middle, with at least one on either side, is any.
  key around(std::size_t label) const {
    return {form::one_label, name_.substr(0, starts_[label] - 1), name_.substr(starts_[label + 1]),
            one_label_hash(heads_[label], tails_[label + 1])};
  }
  static std::uint64_t one_label_hash(std::uint64_t head, std::uint64_t tail) {
    return salted(form::one_label, mixed(head) + tail);
  }

 private:
  std::string_view name_;
  std::size_t count_ = 0;
  std::array<std::size_t, max_labels> starts_;
  std::array<std::uint64_t, max_labels + 1> heads_, tails_;  // of the labels before i, and from i on
};

pattern_index::key pattern_index::key_of(const ip_address& address) {
  const auto bytes = reinterpret_cast<const char*>(address.bytes.data());
  const std::string_view name(bytes, address.bytes.size());
  return {form::address, name, {}, salted(form::address, hash_bytes(bytes, name.size()))};
}

bool pattern_index::is(const node& n, const key& wanted) const {
  const auto text = std::string_view(texts_).substr(n.text);
  return n.hash == wanted.hash && n.shape == wanted.shape && text.substr(0, n.name_size) == wanted.name &&
         text.substr(n.name_size, n.after_size) == wanted.after;
}

// Where it is, or the empty slot where it would be.
std::size_t pattern_index::slot_of(const key& wanted) const {
  const auto mask = slots_.size() - 1;
  auto at = static_cast<std::size_t>(wanted.hash) & mask;
  for (; slots_[at].node != no_node; at = (at + 1) & mask)
    if (slots_[at].tag == upper_half(wanted.hash) && is(nodes_[slots_[at].node], wanted)) break;
  return at;
}

void pattern_index::grow() {
  slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), slot{no_node, 0});
  const auto mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    auto at = static_cast<std::size_t>(nodes_[i].hash) & mask;
    while (slots_[at].node != no_node)
      at = (at + 1) & mask;
    slots_[at] = {i, upper_half(nodes_[i].hash)};
  }
}

void pattern_index::add(const domain_pattern& pattern, const entry& e) {
  const hashed_name name(pattern.name);
  key wanted{};
  switch (pattern.shape) {
    case form::exact:
      wanted = name.exact();
      break;
    case form::subdomains:
      wanted = name.suffix(0);
      longest_suffix_ = std::max(longest_suffix_, name.count());
      break;
    case form::one_label: {
      const hashed_name after(pattern.after);
      wanted = {form::one_label, pattern.name, pattern.after,
                hashed_name::one_label_hash(name.head_hash(), after.hash())};
      longest_before_ = std::max(longest_before_, name.count());
      longest_after_ = std::max(longest_after_, after.count());
      break;
    }
    case form::address:
      wanted = key_of(pattern.address);
      break;
  }
  if (slots_.size() < 2 * (nodes_.size() + 1)) grow();
  auto& found = slots_[slot_of(wanted)];
  if (found.node == no_node) {
    found = {static_cast<std::uint32_t>(nodes_.size()), upper_half(wanted.hash)};
    nodes_.push_back({wanted.hash, static_cast<std::uint32_t>(texts_.size()),
                      static_cast<std::uint16_t>(wanted.name.size()),
                      static_cast<std::uint16_t>(wanted.after.size()), 0, 0, wanted.shape});
    texts_.append(wanted.name).append(wanted.after);
  }
  added_.emplace_back(found.node, e);
}

void pattern_index::finish() {
  std::sort(added_.begin(), added_.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  });
  entries_.reserve(added_.size());
  for (const auto& [index, e] : added_) {
    auto& n = nodes_[index];
    if (n.entry_count++ == 0) n.first_entry = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back(e);
  }
  added_ = {};
}

const pattern_index::entry* pattern_index::find(const node& n, bool allow, std::uint16_t port) const {
  const auto begin = entries_.data() + n.first_entry, end = begin + n.entry_count;
  const auto at = std::lower_bound(begin, end, entry{allow, port, 0});
  return at != end && at->allow == allow && at->port == port ? at : nullptr;
}

void pattern_index::collect(const key& wanted, std::uint16_t port, verdict& out) const {
  const auto index = slots_[slot_of(wanted)].node;
  if (index == no_node) return;
  const auto& n = nodes_[index];
  if (out.deny == nullptr) out.deny = find(n, false, 0);
  if (out.deny == nullptr) out.deny = find(n, false, port);
  if (out.allow == nullptr) out.allow = find(n, true, 0);
  if (out.allow == nullptr) out.allow = find(n, true, port);
  const auto& last = entries_[n.first_entry + n.entry_count - 1];
  if (out.other_port == nullptr && last.allow) out.other_port = &last;
}

pattern_index::verdict pattern_index::of_name(std::string_view canonical_name, std::uint16_t port) const {
  verdict out;
  if (nodes_.empty()) return out;
  const hashed_name name(canonical_name);
  collect(name.exact(), port, out);
  for (std::size_t i = 1; i < name.count() && out.deny == nullptr; ++i) {
    const auto after = name.count() - i;
    if (after <= longest_suffix_) collect(name.suffix(i), port, out);
    if (i <= longest_before_ && after > 1 && after - 1 <= longest_after_) collect(name.around(i), port, out);
  }
  return out;
}

pattern_index::verdict pattern_index::of_address(const ip_address& address, std::uint16_t port) const {
  verdict out;
  if (!nodes_.empty()) collect(key_of(address), port, out);
  return out;
}

}  // namespace ccbox::egress
