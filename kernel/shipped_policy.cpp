#include "shipped_policy.hpp"

#include <charconv>

namespace ccbox {

namespace {

// Fields one after the other, each with a NUL at its end, which no text of a configuration has in it.
class table_writer {
 public:
  void pass(const std::string& text) { out_.append(text).push_back('\0'); }
  void pass(std::uint64_t number) { pass(std::to_string(number)); }
  void pass(const config_entry& entry) {
    pass(entry.pattern);
    pass(entry.reason);
    pass(entry.where);
  }
  template <class T>
  void pass(const std::vector<T>& list) {
    pass(list.size());
    for (const auto& item : list)
      pass(item);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class table_reader {
 public:
  table_reader(std::string_view table, std::string file) : rest_(table), file_(std::move(file)) {}
  void pass(std::string& text) {
    text = rest_.substr(0, rest_.find('\0'));
    rest_.remove_prefix(text.size() + 1);
  }
  void pass(std::uint64_t& number) {
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()) + 1);
  }
  void pass(config_entry& entry) {
    pass(entry.pattern);
    pass(entry.reason);
    pass(entry.where);
    entry.where.insert(0, file_);
  }
  template <class T>
  void pass(std::vector<T>& list) {
    std::size_t size = 0;
    pass(size);
    list.resize(size);
    for (auto& item : list)
      pass(item);
  }

 private:
  std::string_view rest_;
  const std::string file_;
};

// Every member but the file's name, in one order for both directions.
template <class Table, class Config>
void pass_members(Table& table, Config& config) {
  table.pass(config.required_linux);
  table.pass(config.required_macos);
  for (auto* entries : {&config.system_read, &config.read_deny, &config.write_deny, &config.name_deny,
                        &config.name_exempt, &config.exec_deny})
    table.pass(*entries);
  table.pass(config.max_existing_matches);
  auto& variables = config.environment;
  for (auto* texts : {&variables.allow, &variables.deny, &variables.secret_names, &variables.secret_values})
    table.pass(*texts);
}

}  // namespace

std::string to_table(const policy_config& config) {
  table_writer table;
  pass_members(table, config);
  return table.take();
}

policy_config from_table(std::string_view table, const std::string& name) {
  policy_config config;
  config.file = name;
  table_reader reader(table, printable(name));
  pass_members(reader, config);
  return config;
}

std::optional<policy_config> shipped_policy(std::string_view text, const std::string& name) {
  if (text.empty() || text != shipped_text) return std::nullopt;
  return from_table(shipped_table, name);
}

}  // namespace ccbox
