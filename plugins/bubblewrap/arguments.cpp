#include "arguments.hpp"

#include <cstdio>
#include <initializer_list>

#include "paths.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr std::size_t max_arguments = 9000;  // what bubblewrap takes in all, compiled in

class argument_file {
 public:
  void add(std::initializer_list<std::string_view> words) {
    for (const auto word : words)
      bytes_.append(word).push_back('\0');
    count_ += words.size();
  }
  const std::string& bytes() const { return bytes_; }
  std::size_t count() const { return count_; }

 private:
  std::string bytes_;
  std::size_t count_ = 0;
};

std::string octal(unsigned mode) {
  char text[16];
  std::snprintf(text, sizeof text, "%04o", mode);
  return text;
}

void add_namespaces(const plugin::plan_request& request, const host_facilities& host, argument_file& out) {
  if (request.uid() == 0)
    // In the identity namespace that the plan asks for: root over the files that are bound, and over nothing
    // else.
    out.add({"--cap-drop", "ALL", "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add",
             "CAP_FOWNER", "--cap-add", "CAP_FSETID"});
  else
    out.add({"--unshare-user"});
  out.add({"--unshare-pid", "--unshare-ipc", "--unshare-uts"});
  if (host.cgroup_namespace) out.add({"--unshare-cgroup"});
  if (request.network() != CCBOX_NETWORK_HOST) out.add({"--unshare-net"});
  // No --die-with-parent: ccbox-init sees to that (docs/decisions/0008).
  out.add({"--new-session", "--as-pid-1", "--hostname", "ccbox"});
}

void add_step(const entry& e, plugin::plan_sink& sink, argument_file& out) {
  switch (e.kind) {
    case entry_kind::bind:
      out.add({e.read_only ? "--ro-bind-fd" : "--bind-fd", std::to_string(sink.open_path(e.host)), e.guest});
      break;
    case entry_kind::symlink:
      out.add({"--symlink", e.text, e.guest});
      break;
    case entry_kind::tmpfs:
      out.add({"--perms", octal(e.mode), "--tmpfs", e.guest});
      break;
    case entry_kind::directory:
      out.add({"--perms", octal(e.mode), "--dir", e.guest});
      break;
    case entry_kind::proc:
      out.add({"--proc", e.guest});
      break;
    case entry_kind::dev:
      out.add({"--dev", e.guest});
      break;
    case entry_kind::mask:
      if (e.is_directory)
        out.add({"--perms", octal(e.mode), "--tmpfs", e.guest});
      else if (e.system)
        out.add({"--ro-bind", "/dev/null", e.guest});  // cannot be opened there: the mount is nodev
      else
        out.add({"--perms", "0000", "--ro-bind-data", std::to_string(sink.file("mask", {})), e.guest});
      break;
  }
}

}  // namespace

void write_arguments(const plugin::plan_request& request, const host_facilities& host, const view& v,
                     const std::optional<guard>& names, plugin::plan_sink& sink) {
  argument_file file;
  add_namespaces(request, host, file);
  for (const auto& step : v.steps())
    add_step(step, sink, file);
  for (const auto& guest : v.made_read_only())
    file.add({"--remount-ro", guest});
  file.add({"--chdir", "/"});

  constexpr std::size_t on_command_line = 6;
  if (file.count() + on_command_line > max_arguments)
    throw plugin::failure(
        CCBOX_TOO_LARGE,
        "the policy comes to " + std::to_string(file.count() + on_command_line) +
            " arguments, and bubblewrap takes " + std::to_string(max_arguments) +
            "; bind the project instead of the directory above it, or bind read-only what is only read");
  // The broker puts one end of a socket in place of this file.
  const auto place_of_socket = names ? std::to_string(sink.file("broker", {})) : std::string();
  if (names) {
    sink.arguments({names->broker_path, "--orders", std::to_string(sink.file("broker-orders", names->broker)),
                    "--init", place_of_socket});
    if (const int reports = sink.denials(); reports >= 0)
      sink.arguments({"--reports", std::to_string(reports)});
    sink.argument("--");
  }
  sink.arguments({host.bwrap, "--args", std::to_string(sink.file("bwrap-args", file.bytes())), "--",
                  "/proc/self/fd/" + std::to_string(request.init_fd()), "--channel",
                  std::to_string(request.channel_fd())});
  if (names)
    sink.arguments(
        {"--floor", std::to_string(sink.file("floor", names->floor)), "--broker", place_of_socket});
  sink.flags(request.uid() == 0 ? CCBOX_PLAN_IDENTITY_USERNS : 0);
}

}  // namespace ccbox::bubblewrap
