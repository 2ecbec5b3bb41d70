#include "plan_collector.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <set>

#include "utf8.hpp"

namespace ccbox {

namespace {

constexpr std::uint32_t known_flags = CCBOX_PLAN_IDENTITY_USERNS | CCBOX_PLAN_UNCONFINED;

// Ends the handling of one piece; the plugin never sees it.
struct bad_piece {
  error reason;
};

[[noreturn]] void refuse(std::string what, error_code code = error_code::failed) {
  throw bad_piece{{code, std::move(what), {}}};
}

// A text for people, on one line.
std::string people_text(std::string text, const char* what) {
  if (!is_utf8(text)) refuse(std::string(what) + " is not UTF-8: " + quoted(text));
  return printable(text);
}

}  // namespace

template <class Body>
void plan_collector::guarded(Body&& body) noexcept {
  if (failure_) return;  // the first error wins
  try {
    if (++entries_ > max_entries)
      refuse("more than " + std::to_string(max_entries) + " entries", error_code::too_large);
    body();
  } catch (bad_piece& bad) {
    failure_ = std::move(bad.reason);
  } catch (const std::exception&) {
    failure_ = error{error_code::failed, "out of memory", {}};
  }
}

std::string plan_collector::take_text(ccbox_str text, const char* what) {
  if (!text.ptr && text.len > 0) refuse(std::string(what) + " has a length but no bytes");
  if (text.len > max_bytes - bytes_)
    refuse("more than " + std::to_string(max_bytes >> 20) + " MiB of text and files", error_code::too_large);
  bytes_ += text.len;
  return text.len ? std::string(text.ptr, text.len) : std::string();
}

std::int32_t plan_collector::next_number() {
  const auto used = plan_.files.size() + plan_.paths.size() + (plan_.denials > 0 ? 1 : 0);
  if (used >= max_descriptors)
    refuse("more than " + std::to_string(max_descriptors) + " files and paths", error_code::too_large);
  return plan::first_file_fd + static_cast<std::int32_t>(used);
}

plan_collector::plan_collector(std::size_t rule_count) {
  plan_.layers.resize(rule_count);
  sink_.size = sizeof sink_;
  sink_.ctx = this;
  sink_.argument = [](void* ctx, ccbox_str text) {
    auto& self = *static_cast<plan_collector*>(ctx);
    self.guarded([&] {
      auto argument = self.take_text(text, "an argument");
      const auto number = "argument " + std::to_string(self.plan_.argv.size());
      if (argument.find('\0') != std::string::npos)
        refuse(number + " contains a NUL byte: " + quoted(argument));
      if (argument.size() > max_argument_bytes)
        refuse(number + " is longer than 128 KiB", error_code::too_large);
      self.plan_.argv.push_back(std::move(argument));
    });
  };
  sink_.environment = [](void* ctx, ccbox_str raw_name, ccbox_str raw_value) {
    auto& self = *static_cast<plan_collector*>(ctx);
    self.guarded([&] {
      auto name = self.take_text(raw_name, "a variable's name");
      auto value = self.take_text(raw_value, "a variable's value");
      if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
        refuse("a variable is called " + quoted(name));
      if (value.find('\0') != std::string::npos)
        refuse("the value of " + quoted(name) + " contains a NUL byte");
      if (name.size() + 1 + value.size() > max_argument_bytes)
        refuse("the variable " + quoted(name) + " is longer than 128 KiB", error_code::too_large);
      self.plan_.env.emplace_back(std::move(name), std::move(value));
    });
  };
  sink_.file = [](void* ctx, ccbox_str raw_label, ccbox_str bytes) -> std::int32_t {
    auto& self = *static_cast<plan_collector*>(ctx);
    std::int32_t number = -1;
    self.guarded([&] {
      auto label = self.take_text(raw_label, "a file's label");
      const auto is_plain = [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '/'; };
      if (label.empty() || label.size() > 64 || !std::all_of(label.begin(), label.end(), is_plain))
        refuse("a file's label is " + quoted(label.substr(0, 64)));
      auto content = self.take_text(bytes, "a file");
      const auto next = self.next_number();
      self.plan_.files.push_back({next, std::move(label), std::move(content)});
      number = next;
    });
    return number;
  };
  sink_.open_path = [](void* ctx, ccbox_str raw_path) -> std::int32_t {
    auto& self = *static_cast<plan_collector*>(ctx);
    std::int32_t number = -1;
    self.guarded([&] {
      auto path = self.take_text(raw_path, "a path");
      if (!path.starts_with('/') || path.find('\0') != std::string::npos || path.size() >= PATH_MAX)
        refuse("a path to open is not absolute, or no path: " + quoted(path.substr(0, PATH_MAX)));
      const auto next = self.next_number();
      self.plan_.paths.push_back({next, std::move(path)});
      number = next;
    });
    return number;
  };
  sink_.denials = [](void* ctx) -> std::int32_t {
    auto& self = *static_cast<plan_collector*>(ctx);
    std::int32_t number = -1;
    self.guarded([&] {
      if (self.plan_.denials > 0) refuse("it asks twice for a socket for denials");
      number = self.plan_.denials = self.next_number();
    });
    return number;
  };
  sink_.layer = [](void* ctx, std::size_t index, ccbox_str raw_text) {
    auto& self = *static_cast<plan_collector*>(ctx);
    self.guarded([&] {
      if (index >= self.plan_.layers.size())
        refuse("a layer for rule " + std::to_string(index) + " of " +
               std::to_string(self.plan_.layers.size()));
      self.plan_.layers[index] = people_text(self.take_text(raw_text, "a layer's text"), "a layer's text");
    });
  };
  sink_.enforces = [](void* ctx, std::uint64_t bits) {
    auto& self = *static_cast<plan_collector*>(ctx);
    self.guarded([&] {
      if (self.enforces_called_) refuse("it says twice what it enforces");
      self.enforces_called_ = true;
      // A bit of a later version is one that this kernel cannot have asked for.
      self.plan_.enforced = bits & known_rule_bits();
    });
  };
  sink_.flags = [](void* ctx, std::uint32_t flags) {
    auto& self = *static_cast<plan_collector*>(ctx);
    self.guarded([&] {
      // Its isolation may rest on what the flag asks for: without it, something weaker would start.
      if (const auto unknown = flags & ~known_flags) {
        char text[16];
        std::snprintf(text, sizeof text, "0x%x", unknown);
        refuse("it sets the plan flags " + std::string(text) + ", which this version does not know",
               error_code::unenforceable);
      }
      self.plan_.identity_userns |= (flags & CCBOX_PLAN_IDENTITY_USERNS) != 0;
      self.plan_.unconfined |= (flags & CCBOX_PLAN_UNCONFINED) != 0;
    });
  };
}

result<plan> plan_collector::take() {
  guarded([&] {
    if (plan_.argv.empty()) refuse("its argv is empty");
    if (!plan_.argv.front().starts_with('/'))
      refuse("argv[0] is not an absolute path: " + quoted(plan_.argv.front()));
    std::set<std::string_view> names;
    for (const auto& [name, value] : plan_.env)
      if (!names.insert(name).second) refuse("the variable " + quoted(name) + " is given twice");
  });
  if (failure_) return std::move(*failure_);
  return std::move(plan_);
}

}  // namespace ccbox
