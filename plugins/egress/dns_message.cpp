#include "dns_message.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace ccbox::egress {
namespace {

constexpr std::uint16_t class_internet = 1, type_cname = 5, type_opt = 41, udp_bytes = 1232;
constexpr unsigned most_records = 256, most_cnames = 16;

void put16(std::string& out, std::uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value & 0xff);
}

class reader {
 public:
  explicit reader(std::string_view message) : all_(message) {}

  bool failed() const { return failed_; }
  std::uint16_t get16() {
    const auto high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  std::uint32_t get32() {
    const std::uint32_t high = get16();
    return high << 16 | get16();
  }
  std::string_view bytes(std::size_t count) {
    if (failed_ || all_.size() - at_ < count) {
      failed_ = true;
      return {};
    }
    at_ += count;
    return all_.substr(at_ - count, count);
  }
  // Lower case, without the root dot.
  std::string name() {
    std::string out;
    read_name(at_, out, true);
    return out;
  }
  // One that starts at `offset`, in the data of a record.
  std::string name_at(std::size_t offset) {
    std::string out;
    read_name(offset, out, false);
    return out;
  }
  std::size_t at() const { return at_; }

 private:
  unsigned byte() {
    if (at_ >= all_.size()) {
      failed_ = true;
      return 0;
    }
    return static_cast<unsigned char>(all_[at_++]);
  }

  void read_name(std::size_t from, std::string& out, bool advance) {
    std::size_t at = from, lowest = from;
    bool jumped = false;
    for (;;) {
      if (at >= all_.size()) break;
      const auto length = static_cast<unsigned char>(all_[at]);
      if (length == 0) {
        if (advance && !jumped) at_ = at + 1;
        return;
      }
      if (length >= 0xc0) {
        if (at + 1 >= all_.size()) break;
        const std::size_t target = (length & 0x3fu) << 8 | static_cast<unsigned char>(all_[at + 1]);
        if (target >= lowest) break;  // only backwards, so it ends
        if (advance && !jumped) at_ = at + 2;
        jumped = true;
        at = lowest = target;
        continue;
      }
      if (length > 63 || at + 1 + length > all_.size() || out.size() + length > 254) break;
      if (!out.empty()) out += '.';
      for (const char c : all_.substr(at + 1, length)) {
        if (c == '.') failed_ = true;  // one label is not two
        out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      }
      at += 1 + length;
    }
    failed_ = true;
  }

  std::string_view all_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

struct record {
  std::string owner;
  std::uint16_t type = 0;
  std::uint32_t ttl = 0;
  std::string_view data;
  std::string target;  // CNAME
};

std::optional<record> read_record(reader& in) {
  record out;
  out.owner = in.name();
  out.type = in.get16();
  const auto kind = in.get16();
  out.ttl = in.get32();
  const auto length = in.get16();
  const auto start = in.at();
  out.data = in.bytes(length);
  if (in.failed()) return std::nullopt;
  if (kind != class_internet) out.type = 0;
  if (out.type == type_cname) out.target = in.name_at(start);
  if (in.failed()) return std::nullopt;
  return out;
}

void add_address(const record& one, dns_type type, lookup_result& result) {
  ip_address address;
  if (type == dns_type::a && one.data.size() == 4) {
    std::uint32_t bits = 0;
    for (const char c : one.data)
      bits = bits << 8 | static_cast<unsigned char>(c);
    address = ip_address::from_v4(bits);
  } else if (type == dns_type::aaaa && one.data.size() == 16) {
    std::memcpy(address.bytes.data(), one.data.data(), 16);
  } else {
    return;
  }
  auto& all = result.addresses;
  if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(address);
}

}  // namespace

std::string write_dns_question(std::uint16_t id, std::string_view name, dns_type type) {
  std::string out;
  put16(out, id);
  put16(out, 0x0100);  // recursion desired
  put16(out, 1);
  put16(out, 0);
  put16(out, 0);
  put16(out, 1);
  for (std::size_t start = 0; start <= name.size();) {
    const auto end = std::min(name.find('.', start), name.size());
    out += static_cast<char>(end - start);
    out.append(name.substr(start, end - start));
    start = end + 1;
  }
  out += '\0';
  put16(out, static_cast<std::uint16_t>(type));
  put16(out, class_internet);
  out += '\0';  // the root owns the OPT record
  put16(out, type_opt);
  put16(out, udp_bytes);
  out.append(6, '\0');
  return out;
}

dns_answer read_dns_answer(std::string_view message, std::uint16_t id, std::string_view name, dns_type type) {
  reader in(message);
  dns_answer out;
  const auto got_id = in.get16();
  const auto flags = in.get16();
  const auto questions = in.get16();
  const auto answers = in.get16();
  in.get32();
  if (in.failed() || got_id != id || (flags & 0x8000) == 0 || questions != 1) return out;
  const auto asked = in.name();
  const auto asked_type = in.get16();
  const auto asked_class = in.get16();
  if (in.failed() || asked != name || asked_type != static_cast<std::uint16_t>(type) ||
      asked_class != class_internet)
    return out;
  if ((flags & 0x0200) != 0) {
    out.what = dns_answer::status::truncated;
    return out;
  }
  out.what = dns_answer::status::answered;
  const unsigned code = flags & 15u;
  if (code != 0) {
    out.result.what = code == 3 ? lookup_result::status::no_such_name : lookup_result::status::failed;
    return out;
  }
  std::vector<record> records;
  for (unsigned i = 0; i < answers && i < most_records; ++i) {
    auto one = read_record(in);
    if (!one) return out;  // `failed`: half an answer is none
    records.push_back(std::move(*one));
  }
  std::string owner(name);
  std::uint32_t ttl = 86'400;
  for (unsigned hops = 0; hops <= most_cnames; ++hops) {
    const record* alias = nullptr;
    for (const auto& one : records) {
      if (one.owner != owner) continue;
      if (one.type == static_cast<std::uint16_t>(type)) {
        add_address(one, type, out.result);
        ttl = std::min(ttl, one.ttl);
      } else if (one.type == type_cname) {
        alias = &one;
      }
    }
    if (!out.result.addresses.empty() || !alias) break;
    ttl = std::min(ttl, alias->ttl);
    owner = alias->target;
  }
  out.result.what = lookup_result::status::found;
  out.result.ttl = std::chrono::seconds(ttl);
  return out;
}

}  // namespace ccbox::egress
