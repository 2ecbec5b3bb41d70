#include "shipped_config.hpp"

#include <charconv>

namespace ccbox {

namespace {

// Fields one after the other, each with a NUL at its end, which no text of a configuration has in it.
class table_writer {
 public:
  void pass(const std::string& text) { out_.append(text).push_back('\0'); }
  void place(const std::string& where) { pass(where); }
  void number(std::uint64_t value) { pass(std::to_string(value)); }
  template <class T>
  void pass_number(T value) {
    number(static_cast<std::uint64_t>(value));
  }
  template <class T, class Each>
  void list(const std::vector<T>& items, Each each) {
    number(items.size());
    for (const auto& item : items)
      each(item);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class table_reader {
 public:
  table_reader(std::string_view table, std::string file) : rest_(table), file_(std::move(file)) {}
  void pass(std::string& text) { text = next(); }
  // A place in the file, which was written without its name.
  void place(std::string& where) {
    const auto position = next();
    where.reserve(file_.size() + position.size());
    where.append(file_).append(position);
  }
  template <class T>
  void pass_number(T& value) {
    value = static_cast<T>(number());
  }
  template <class T, class Each>
  void list(std::vector<T>& items, Each each) {
    items.resize(number());
    for (auto& item : items)
      each(item);
  }

 private:
  std::string_view next() {
    const auto text = rest_.substr(0, rest_.find('\0'));
    rest_.remove_prefix(text.size() + 1);
    return text;
  }
  std::uint64_t number() {
    const auto digits = next();
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  std::string_view rest_;
  const std::string file_;
};

// Every member but the file's name, in one order for both directions.
template <class Table, class Config>
void pass_policy(Table& table, Config& config) {
  table.pass_number(config.required_linux);
  table.pass_number(config.required_macos);
  for (auto* entries : {&config.system_read, &config.read_deny, &config.write_deny, &config.name_deny,
                        &config.name_exempt, &config.exec_deny})
    table.list(*entries, [&](auto& entry) {
      table.pass(entry.pattern);
      table.pass(entry.reason);
      table.place(entry.where);
      table.pass_number(entry.condition);
    });
  table.pass_number(config.max_existing_matches);
  auto& variables = config.environment;
  for (auto* texts : {&variables.allow, &variables.deny, &variables.secret_names, &variables.secret_values})
    table.list(*texts, [&](auto& text) { table.pass(text); });
}

template <class Table, class Config>
void pass_egress(Table& table, Config& config) {
  const auto pass_entry = [&](auto& entry) {
    table.pass(entry.pattern);
    table.pass(entry.reason);
    table.pass_number(entry.line);
  };
  for (auto* groups :
       {&config.baseline, &config.github, &config.ticketing, &config.optional, &config.denied, &config.floor})
    table.list(*groups, [&](auto& group) {
      table.pass(group.name);
      table.pass(group.origin);
      table.pass(group.why);
      table.pass_number(group.git_hosts);
      table.pass_number(group.enabled);
      table.list(group.entries, pass_entry);
    });
  table.list(config.resolved_ranges, pass_entry);
  table.pass_number(config.bridge);
  table.list(config.options, [&](auto& option) {
    table.pass(option.first);
    table.pass(option.second);
  });
}

template <class Table, class Manifest>
void pass_manifest(Table& table, Manifest& plugins) {
  table.list(plugins.plugins, [&](auto& entry) {
    table.pass(entry.path);
    table.pass_number(entry.enabled);
    table.pass_number(entry.priority);
    table.pass_number(entry.required);
    table.pass_number(entry.on_request);
    table.list(entry.options, [&](auto& option) {
      table.pass(option.first);
      table.pass(option.second);
    });
    table.place(entry.where);
  });
}

}  // namespace

std::string to_table(const policy_config& config) {
  table_writer table;
  pass_policy(table, config);
  return table.take();
}

std::string to_table(const egress_config& config) {
  table_writer table;
  pass_egress(table, config);
  return table.take();
}

std::string to_table(const manifest& plugins) {
  table_writer table;
  pass_manifest(table, plugins);
  return table.take();
}

std::optional<policy_config> shipped_policy(std::string_view text, const std::string& name) {
  if (text.empty() || text != shipped_policy_file.text) return std::nullopt;
  policy_config config;
  config.file = name;
  table_reader table(shipped_policy_file.table, printable(name));
  pass_policy(table, config);
  return config;
}

std::optional<egress_config> shipped_egress(std::string_view text, const std::string& name) {
  if (text.empty() || text != shipped_egress_file.text) return std::nullopt;
  egress_config config;
  config.file = name;
  table_reader table(shipped_egress_file.table, printable(name));
  pass_egress(table, config);
  config.as_built = true;
  return config;
}

std::optional<manifest> shipped_manifest(std::string_view text, const std::string& name,
                                         const std::string& plugin_directory) {
  if (text.empty() || text != shipped_manifest_file.text) return std::nullopt;
  manifest plugins;
  plugins.file = name;
  table_reader table(shipped_manifest_file.table, printable(name));
  pass_manifest(table, plugins);
  for (auto& entry : plugins.plugins)
    entry.path = in_plugin_directory(entry.path, plugin_directory);
  return plugins;
}

}  // namespace ccbox
