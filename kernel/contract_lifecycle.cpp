// Checks of what every plugin keeps, whatever it is: descriptor, create, destroy, extensions, options.

#include <algorithm>
#include <chrono>
#include <memory>

#include "contract_checks.hpp"
#include "contract_resources.hpp"
#include "result.hpp"
#include "utf8.hpp"

namespace ccbox::contract {
namespace {

bool is_plugin_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 32 && lower(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

void descriptor_is_sane(const subject& s) {
  const auto* d = s.descriptor;
  expect(s.entry() == d, "ccbox_plugin_v1 returns another descriptor the second time; it must be static");
  expect(is_plugin_name({d->name.ptr, d->name.len}),
         "the name " + quoted({d->name.ptr, d->name.len}) + " is not [a-z][a-z0-9_-]{0,31}");
  const std::string_view version(d->version.ptr, d->version.len);
  expect(!version.empty() && version.size() <= 64 && is_utf8(version) && printable(version) == version,
         "the version " + quoted(version) + " is not one short line");
  expect(d->create && d->destroy && d->get_extension, "create, destroy or get_extension is null");
}

void starts_no_thread_before_create(const subject& s) {
  expect(open_resources().threads == s.threads_before,
         "loading the plugin started a thread; start it in create");
}

void create_and_destroy_are_quick(const subject& s) {
  const std::chrono::milliseconds limit(1000 * s.time_factor);
  const auto started = std::chrono::steady_clock::now();
  auto made = std::make_unique<instance>(s);
  const auto created = std::chrono::steady_clock::now();
  expect(created - started <= limit, "create took longer than 1 s");
  made.reset();
  expect(std::chrono::steady_clock::now() - created <= limit, "destroy took longer than 1 s");
}

void create_and_destroy_leak_nothing(const subject& s) {
  expect_no_growth("create and destroy, 100 times,", [&] { instance one(s); });
}

void refused_create_leaks_nothing(const subject& s) {
  expect_no_growth("a refused create, 100 times,", [&] {
    create_plugin(s, {{"ccbox-contract-no-such-option", "1"}});
  });
}

void answers_a_known_extension(const subject& s) {
  instance i(s);
  for (const std::string_view name :
       {"ccbox.backend/1", "ccbox.egress/1", "ccbox.monitor/1", "ccbox.guest/1"}) {
    guarded_memory memory;
    const auto text = memory.text(name);
    const void* table = s.descriptor->get_extension(i.get(), text);
    if (!table) continue;
    expect(s.descriptor->get_extension(i.get(), text) == table,
           std::string(name) + " is another table the second time; it must live until destroy");
    return;
  }
  throw violation{"get_extension answers none of the extensions of this ABI version"};
}

void unknown_extension_is_null(const subject& s) {
  instance i(s);
  const std::string nul("ccbox.backend/1\0x", 17);
  for (const std::string& name :
       {std::string(), std::string("ccbox.unknown/1"), std::string("ccbox.backend/2"),
        std::string("ccbox.backend/"), std::string("ccbox.backend/10"), std::string("CCBOX.BACKEND/1"), nul,
        std::string("ccbox.backend/1\n"), std::string(100'000, 'x'), std::string("\xff\xfe")}) {
    guarded_memory memory;
    expect(s.descriptor->get_extension(i.get(), memory.text(name)) == nullptr,
           "get_extension answers " + quoted(name.substr(0, 40)) + "; compare the length and then the bytes");
  }
}

void extension_name_needs_no_terminator(const subject& s) {
  instance i(s);
  guarded_memory memory;
  // The same name, once before an inaccessible page and once in front of other bytes.
  for (const std::string_view name :
       {"ccbox.backend/1", "ccbox.egress/1", "ccbox.monitor/1", "ccbox.guest/1"}) {
    const void* exact = s.descriptor->get_extension(i.get(), memory.text(name));
    auto longer = memory.text(std::string(name) + "garbage");
    longer.len = name.size();
    expect(s.descriptor->get_extension(i.get(), longer) == exact,
           "get_extension reads beyond the length of the name " + std::string(name));
  }
}

void unknown_option_is_refused(const subject& s) {
  for (const std::string& key : {std::string("ccbox-contract-no-such-option"), std::string("x")}) {
    auto options = s.options;
    options.emplace_back(key, "1");
    const auto answer = create_plugin(s, options);
    expect(answer.status == CCBOX_INVALID, "create with the unknown option '" + key + "' returned " +
                                               status_name(answer.status) + ", not CCBOX_INVALID");
    expect(answer.error.find(key) != std::string::npos,
           "the error does not name the option: " + quoted(answer.error));
  }
}

void bad_option_bytes_do_no_harm(const subject& s) {
  const std::string nul("a\0b", 3);
  for (const std::string& bytes :
       {std::string(), nul, std::string("\xff\xfe"), std::string("a\nb"), std::string(1 << 20, 'x')}) {
    for (const auto& [key, value] :
         {std::pair(bytes, std::string("1")), std::pair(std::string("ccbox-contract"), bytes)}) {
      const auto answer = create_plugin(s, {{key, value}});
      expect(answer.status == CCBOX_INVALID, "create with the option " + quoted(key.substr(0, 40)) +
                                                 " returned " + status_name(answer.status) +
                                                 ", not CCBOX_INVALID");
    }
  }
}

void options_are_stepped_by_their_stride(const subject& s) {
  // A newer host has larger options: what follows the first is found only by stepping by the stride. Given
  // options, which the plugin knows, come first.
  constexpr std::uint32_t larger = 24;
  auto options = s.options;
  options.emplace_back("ccbox-contract-one", "1");
  options.emplace_back("ccbox-contract-two", "2");
  const auto answer = create_plugin(s, options, larger);
  expect(answer.status == CCBOX_INVALID && answer.error.find("ccbox-contract-") != std::string::npos,
         "options of a newer host are misread: " + status_name(answer.status) + " " + quoted(answer.error));
  if (s.options.empty()) return;
  const auto given = create_plugin(s, s.options, larger);
  expect(given.status == CCBOX_OK, "options of a newer host are misread: " + quoted(given.error));
  s.descriptor->destroy(given.plugin);
}

void create_error_fits_its_buffer(const subject& s) {
  for (const std::size_t capacity : {0, 1, 2, 7, 40, 4096})
    create_plugin(s, {{"ccbox-contract-no-such-option", "1"}}, 0, capacity);
}

}  // namespace

const std::vector<check_entry>& lifecycle_checks() {
  static const std::vector<check_entry> checks = {
      {"descriptor_is_sane", "the descriptor is static and complete, its name and version are well formed",
       descriptor_is_sane},
      {"starts_no_thread_before_create", "loading runs nothing", starts_no_thread_before_create},
      {"create_and_destroy_are_quick", "create and destroy take at most 1 s each",
       create_and_destroy_are_quick},
      {"create_and_destroy_leak_nothing", "100 instances leave no descriptor, thread, process or memory",
       create_and_destroy_leak_nothing},
      {"refused_create_leaks_nothing", "a create that fails leaves nothing either",
       refused_create_leaks_nothing},
      {"answers_a_known_extension", "get_extension answers an extension of this ABI version",
       answers_a_known_extension},
      {"unknown_extension_is_null", "get_extension answers NULL to every other name",
       unknown_extension_is_null},
      {"extension_name_needs_no_terminator", "names are compared by their length",
       extension_name_needs_no_terminator},
      {"unknown_option_is_refused", "an option that the plugin does not know is CCBOX_INVALID and named",
       unknown_option_is_refused},
      {"bad_option_bytes_do_no_harm", "empty, huge and malformed options are refused",
       bad_option_bytes_do_no_harm},
      {"options_are_stepped_by_their_stride", "options of a newer host are read right",
       options_are_stepped_by_their_stride},
      {"create_error_fits_its_buffer", "an error text is never longer than its buffer",
       create_error_fits_its_buffer},
  };
  return checks;
}

}  // namespace ccbox::contract
