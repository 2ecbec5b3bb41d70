#include "trial_plan.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host_tree.hpp"
#include "tools.hpp"
#include "view.hpp"

namespace ccbox::bubblewrap {

namespace {

constexpr int channel_fd = 3, init_fd = 4, first_fd = 5;

std::int32_t last_number(const trial_plan& plan) {
  return channel_fd + static_cast<std::int32_t>(plan.descriptors.size()) - 1;
}

// The sink of the ABI, so that the trial goes through the very code that plans launches.
ccbox_plan_sink sink_into(trial_plan& plan) {
  ccbox_plan_sink sink{};
  sink.size = sizeof sink;
  sink.ctx = &plan;
  sink.argument = [](void* ctx, ccbox_str text) {
    static_cast<trial_plan*>(ctx)->argv.emplace_back(plugin::view(text));
  };
  sink.environment = [](void*, ccbox_str, ccbox_str) {};
  sink.file = [](void* ctx, ccbox_str label, ccbox_str bytes) -> std::int32_t {
    auto* p = static_cast<trial_plan*>(ctx);
    const std::string name(plugin::view(label));
    auto fd = lifted(::memfd_create(name.c_str(), MFD_CLOEXEC), "memfd_create");
    if (::write(fd.get(), bytes.ptr, bytes.len) != static_cast<ssize_t>(bytes.len))
      fail_trial("write " + name);
    ::lseek(fd.get(), 0, SEEK_SET);
    p->descriptors.push_back(std::move(fd));
    return last_number(*p);
  };
  sink.open_path = [](void* ctx, ccbox_str path) -> std::int32_t {
    auto* p = static_cast<trial_plan*>(ctx);
    const std::string name(plugin::view(path));
    p->descriptors.push_back(lifted(::open(name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC), "open " + name));
    return last_number(*p);
  };
  sink.layer = [](void*, std::size_t, ccbox_str) {};
  sink.enforces = [](void*, std::uint64_t) {};
  sink.denials = [](void* ctx) -> std::int32_t {
    auto* p = static_cast<trial_plan*>(ctx);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail_trial("socketpair");
    p->denials = descriptor(ends[0]);
    p->descriptors.push_back(lifted(ends[1], "socketpair"));
    return last_number(*p);
  };
  sink.flags = [](void* ctx, std::uint32_t flags) {
    static_cast<trial_plan*>(ctx)->identity = (flags & CCBOX_PLAN_IDENTITY_USERNS) != 0;
  };
  return sink;
}

// What any dynamically linked program needs of the root directory.
void add_system(std::vector<ccbox_rule>& rules, const host_tree& tree) {
  static constexpr std::string_view roots[] = {"/usr",   "/bin",    "/lib", "/lib32",
                                               "/lib64", "/libx32", "/nix", "/gnu"};
  for (const auto root : roots) {
    const auto type = tree.type(std::string(root));
    if (type != node_type::directory && type != node_type::linked) continue;
    const std::uint32_t what = type == node_type::directory ? CCBOX_RULE_DIRECTORY : CCBOX_RULE_SYMLINK;
    const auto path = plugin::str(root);
    rules.push_back({CCBOX_KIND_MOUNT,
                     CCBOX_RULE_READ_ONLY | CCBOX_RULE_EXISTS | CCBOX_RULE_SYSTEM | what,
                     CCBOX_RULE_FS_BINDS_ONLY,
                     path,
                     path,
                     {}});
  }
}

// A writable directory, and a name that may not be made in it.
void add_scratch(std::vector<ccbox_rule>& rules, const std::string& scratch) {
  constexpr std::string_view inside = "/trial";
  rules.push_back({CCBOX_KIND_MOUNT,
                   CCBOX_RULE_EXISTS | CCBOX_RULE_DIRECTORY,
                   CCBOX_RULE_FS_BINDS_ONLY,
                   plugin::str(scratch),
                   plugin::str(inside),
                   {}});
  rules.push_back({CCBOX_KIND_NAME_DENY, CCBOX_RULE_GLOB, CCBOX_RULE_FS_NAME_DENY,
                   plugin::str(forbidden_glob), plugin::str(inside), plugin::str("a trial")});
}

descriptor channel_to_nobody() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_trial("socketpair");
  const descriptor peer(ends[0]);
  return lifted(ends[1], "socketpair");
}

trial_plan plan_trial(const host_facilities& host, const std::vector<ccbox_rule>& rules,
                      const std::string& first_program, std::string_view init_path) {
  const real_host_tree tree;
  ccbox_plan_request request{};
  request.size = sizeof request;
  request.rule_stride = sizeof(ccbox_rule);
  request.rules = rules.data();
  request.rule_count = rules.size();
  request.workdir = plugin::str("/");
  request.home = plugin::str("/run/ccbox/home");
  request.tmpdir = plugin::str("/tmp");
  request.network = CCBOX_NETWORK_PROXY_ONLY;
  request.uid = ::geteuid();
  request.gid = ::getegid();
  request.channel_fd = channel_fd;
  request.init_fd = init_fd;
  request.init_path = plugin::str(init_path);

  trial_plan plan;
  plan.descriptors.push_back(channel_to_nobody());
  plan.descriptors.push_back(
      lifted(::open(first_program.c_str(), O_RDONLY | O_CLOEXEC), "open '" + first_program + "'"));
  static_assert(first_fd == init_fd + 1);
  const auto table = sink_into(plan);
  const plugin::plan_request asked(&request);
  plugin::plan_sink sink(&table);
  const view v(asked, tree);
  write_arguments(asked, host, v, plan_guard(asked, v), sink);
  return plan;
}

}  // namespace

void fail_trial(const std::string& what) {
  throw plugin::failure(CCBOX_FAILED, what + ": " + std::strerror(errno));
}

descriptor lifted(int fd, const std::string& what) {
  const descriptor low(fd);
  if (fd < 0) fail_trial(what);
  descriptor high(::fcntl(fd, F_DUPFD_CLOEXEC, 100));
  if (high.get() < 0) fail_trial(what);
  return high;
}

std::vector<std::pair<int, int>> trial_plan::moves() const {
  std::vector<std::pair<int, int>> all;
  for (const int to : {STDIN_FILENO, STDOUT_FILENO})
    all.emplace_back(descriptors.front().get(), to);
  int number = channel_fd;
  for (const auto& fd : descriptors)
    all.emplace_back(fd.get(), number++);
  return all;
}

trial_plan plan_enclosure_trial(const host_facilities& host) {
  std::vector<ccbox_rule> rules;
  add_system(rules, real_host_tree());
  return plan_trial(host, rules, find_tool("true", {}), {});
}

trial_plan plan_name_trial(const host_facilities& host, std::string_view init_path,
                           const std::string& scratch) {
  std::vector<ccbox_rule> rules;
  add_system(rules, real_host_tree());
  add_scratch(rules, scratch);
  auto plan = plan_trial(host, rules, std::string(init_path), init_path);
  for (const std::string_view word : {std::string_view("--try"), ordinary_name, forbidden_name})
    plan.argv.emplace_back(word);
  return plan;
}

}  // namespace ccbox::bubblewrap
