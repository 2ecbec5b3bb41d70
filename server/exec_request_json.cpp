#include "exec_request_json.hpp"

#include <signal.h>

#include <boost/json.hpp>
#include <cstring>

#include "json_reader.hpp"

namespace ccbox::server {

namespace json = boost::json;

namespace {

error bad(const std::string& key, const std::string& what, const std::string& hint = {}) {
  return json_error(key, what, hint);
}

result<int> signal_of(const std::string& word, const std::string& key) {
  const std::string name = word.starts_with("SIG") ? word.substr(3) : word;
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known && name == known) return number;
  }
  return bad(key, "no such signal: " + quoted_excerpt(word), "a name such as TERM, INT or KILL");
}

struct size_fields {
  std::uint64_t rows = 0, cols = 0;
  void read(json_object_reader& reader) {
    reader.required("rows", rows);
    reader.required("cols", cols);
  }
  result<window_size> value() const {
    constexpr std::uint64_t most = 0xffff;
    const window_size out{static_cast<unsigned>(std::min(rows, most + 1)),
                          static_cast<unsigned>(std::min(cols, most + 1))};
    if (auto fine = check_size(out); !fine) return fine.error();
    return out;
  }
};

result<std::vector<std::pair<std::string, std::string>>> env_of(const json::value& value) {
  if (!value.is_object()) return bad("env", "must be an object, not " + std::string(json_kind(value)));
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, text] : value.get_object()) {
    const std::string key = "env." + std::string(name);
    if (!text.is_string()) return bad(key, "must be a string, not " + std::string(json_kind(text)));
    if (name.empty() || name.find('=') != name.npos)
      return bad(key, "a variable's name is not empty and has no '='");
    out.emplace_back(name, text.get_string());
  }
  return out;
}

// One object, to its last key.
template <class Read>
result<void> read_object(std::string_view text, Read read) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  std::optional<error> failure;
  json_object_reader reader(*value, "", failure);
  read(reader);
  if (!failure) reader.no_other_keys();
  if (failure) return *failure;
  return {};
}

}  // namespace

result<wanted_command> wanted_command_from_json(std::string_view text) {
  wanted_command out;
  std::optional<json::value> env, pty;
  auto fine = read_object(text, [&](json_object_reader& reader) {
    reader.required("argv", out.request.argv);
    std::optional<std::string> cwd;
    reader.optional("cwd", cwd);
    out.request.cwd = cwd.value_or("");
    reader.optional("input", out.input);
    if (const auto* member = reader.find("env", false); member && !member->is_null()) env = *member;
    if (const auto* member = reader.find("pty", false); member && !member->is_null()) pty = *member;
  });
  if (!fine) return fine.error();
  if (out.request.argv.empty() || out.request.argv[0].empty())
    return bad("argv", "must name a program", R"(["make", "test"])");
  if (env) {
    auto variables = env_of(*env);
    if (!variables) return variables.error();
    out.request.extra_env = std::move(*variables);
  }
  if (pty) {
    std::optional<error> failure;
    json_object_reader reader(*pty, "pty", failure);
    size_fields size;
    size.read(reader);
    if (!failure) reader.no_other_keys();
    if (failure) return *failure;
    auto wanted = size.value();
    if (!wanted) return wanted.error();
    out.request.pty = *wanted;
  }
  return out;
}

result<exec_instruction> exec_instruction_from_json(std::string_view text) {
  std::string type, signal;
  size_fields size;
  auto fine = read_object(text, [&](json_object_reader& reader) {
    reader.required("type", type);
    if (type == "signal") reader.required("signal", signal);
    if (type == "resize") size.read(reader);
  });
  if (!fine) return fine.error();
  if (type == "eof") return exec_instruction(end_of_input());
  if (type == "signal") {
    const auto number = signal_of(signal, "signal");
    if (!number) return number.error();
    return exec_instruction(send_signal{*number});
  }
  if (type == "resize") {
    const auto wanted = size.value();
    if (!wanted) return wanted.error();
    return exec_instruction(*wanted);
  }
  return bad("type", "no such instruction: " + quoted_excerpt(type), "eof, signal or resize");
}

result<int> signal_from_json(std::string_view text) {
  std::string signal;
  auto fine = read_object(text, [&](json_object_reader& reader) { reader.required("signal", signal); });
  if (!fine) return fine.error();
  return signal_of(signal, "signal");
}

result<window_size> window_size_from_json(std::string_view text) {
  size_fields size;
  auto fine = read_object(text, [&](json_object_reader& reader) { size.read(reader); });
  if (!fine) return fine.error();
  return size.value();
}

}  // namespace ccbox::server
