#include "spec_source.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstdlib>

#include "json_reader.hpp"
#include "quantity.hpp"
#include "unique_fd.hpp"

namespace ccbox {

namespace {

constexpr std::size_t max_spec_bytes = 1 << 20;

// Files and pipes that somebody writes to (`--spec <(…)`); never more than the limit.
result<std::string> read_spec_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const bool is_input = path == "-";
  unique_fd file(is_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                          : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return system_error("open", path, errno, "--spec names a JSON file with a sandbox spec");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("fstat", path, errno);
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) && !(is_input && S_ISSOCK(status.st_mode))) {
    return bad_value("--spec", path, S_ISDIR(status.st_mode) ? "is a directory" : "is not a file",
                     "name a JSON file with a sandbox spec");
  }
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n == 0 && text.empty() && !is_input && S_ISFIFO(status.st_mode))
      return bad_value("--spec", path, "nobody writes to it", "name a JSON file with a sandbox spec");
    if (n == 0) return text;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // there is a writer: wait for it
      ::fcntl(file.get(), F_SETFL, 0);
      continue;
    }
    if (n < 0) return system_error("read", path, errno);
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > max_spec_bytes) {
      return error{error_code::too_large, "--spec " + quoted(path) + " is larger than 1 MiB", {}};
    }
  }
}

std::string random_session_id() {
  unsigned char bytes[8];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) std::abort();
  constexpr char hex[] = "0123456789abcdef";
  std::string id = "run-";
  for (const unsigned char byte : bytes)
    (id += hex[byte >> 4]) += hex[byte & 15];
  return id;
}

// The names that a text need not give because the command line makes them up.
result<written_spec> parse(std::string_view source, std::string_view text) {
  const auto located = [&](error e) {
    e.what = std::string(source) + ": " + e.what;
    if (e.hint.empty()) e.hint = "a sandbox spec is one JSON object, such as {\"mode\": \"review\"}";
    return e;
  };
  auto value = parse_json(text, {max_spec_bytes});
  if (!value) return located(value.error());
  bool says_mounts = false;
  if (auto* object = value->if_object()) {
    says_mounts = object->contains("bindMounts");
    const sandbox_spec made_up = fresh_spec();
    object->emplace("sessionId", made_up.session_id);
    object->emplace("workspaceId", made_up.workspace_id);
    object->emplace("bindMounts", boost::json::array());
  }
  auto spec = sandbox_spec_from_json(*value);
  if (!spec) return located(spec.error());
  return written_spec{std::move(*spec), says_mounts};
}

}  // namespace

sandbox_spec fresh_spec() {
  sandbox_spec spec;
  spec.session_id = random_session_id();
  spec.workspace_id = "cli";
  return spec;
}

result<written_spec> spec_from_file(const std::string& path) {
  auto text = read_spec_file(path);
  if (!text) return text.error();
  return parse("--spec " + quoted(path), *text);
}

result<written_spec> spec_from_json(const std::string& text) {
  return parse("--spec-json", text);
}

}  // namespace ccbox
