#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include "commands.hpp"
#include "output.hpp"

namespace ccbox {

const std::vector<command_entry>& all_commands() {
  static const std::vector<command_entry> commands{
      {"run", "Run a command in an enclosure", run_command},
      {"wrap", "Print the argv and environment that run a command in an enclosure", wrap_command},
      {"explain", "Print the rules of a launch, why each is there and who enforces it", explain_command},
      {"check", "Tell whether a path or a domain may be used, and why", check_command},
      {"probe", "Tell what this host can enforce", probe_command},
      {"plugins", "List the plugins: loaded, disabled, skipped and why", plugins_command},
      {"doctor", "Check this host and the installation, and say what to do", doctor_command},
      {"proxy", "Run one proxy pair alone, in the foreground", proxy_command},
      {"net-connect", "Connect through the session's SOCKS5 proxy: a ProxyCommand for ssh",
       net_connect_command},
      {"plugin new", "Write a new backend plugin, ready to build", plugin_new_command},
      {"plugin test", "Run the contract tests against a plugin file", plugin_test_command},
  };
  return commands;
}

parsed parse_or_report(option_parser& parser, const words& arguments, const operands& expected) {
  auto rest = parser.parse(arguments);
  if (!rest) return {true, report(rest.error()), {}};
  if (parser.help_requested()) {
    print(parser.help());
    return {true, 0, {}};
  }
  const std::size_t given = rest->size(), least = expected.names.size();
  if (given < least) {
    std::string missing;
    for (std::size_t i = given; i < least; ++i)
      missing += (missing.empty() ? "" : " ") + expected.names[i];
    return {true,
            report({error_code::invalid_argument, "`" + missing + "` is missing",
                    parser.usage() + "; for example: " + expected.example}),
            {}};
  }
  if (given > least && !expected.more) {
    return {
        true,
        report({error_code::invalid_argument, "unexpected word " + quoted((*rest)[least]), parser.usage()}),
        {}};
  }
  return {false, 0, std::move(*rest)};
}

namespace {

std::string general_help() {
  std::vector<std::vector<std::string>> rows;
  for (const command_entry& command : all_commands())
    rows.push_back({command.name, command.summary});
  rows.push_back({"version", "Print the version"});
  rows.push_back({"help [COMMAND]", "Print this, or the options of a command"});
  return "Runs commands in an enclosure: they read what they may, write only what was bound, and reach the "
         "network only through proxies.\n\nUsage: ccbox COMMAND [options]\n\nCommands:\n" +
         aligned(rows, "  ") +
         "\nThe exit code of `run` is the command's own; 125: refused or failed before the command started, "
         "126: it cannot be executed, 127: not found, 128+n: ended by signal n.\n";
}

// A standard descriptor that the caller closed would be taken by the first file opened here.
void open_standard_descriptors() {
  struct stat status {};
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fstat(fd, &status) == 0) continue;
    if (::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) ::_exit(exit_refused);
  }
}

// A write to a pipe without reader answers EPIPE, one over the caller's RLIMIT_FSIZE (memory files count too)
// EFBIG. Ignoring the signals would be inherited; a handler is not.
void tolerate_failing_writes() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGPIPE, SIGXFSZ})
    ::sigaction(number, &action, nullptr);
}

// A launch fills some 700 KiB of heap: taken at once, that is one call in place of a page fault each 4 KiB.
void take_heap_at_once() {
#if defined(MADV_POPULATE_WRITE)
  constexpr std::size_t bytes = 768 << 10, page = 4096;
  ::mallopt(M_TOP_PAD, bytes);
  ::mallopt(M_TRIM_THRESHOLD, 8 * bytes);  // nor is a part of it given back, and taken again
  void* const probe =
      std::malloc(100 << 10);  // below the size that gets a mapping of its own: the heap grows
  const auto begin = (reinterpret_cast<std::uintptr_t>(probe) + page - 1) & ~(page - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0)) & ~(page - 1);
  if (probe && begin < end && end - begin <= 2 * bytes)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
  std::free(probe);
#endif
}

bool is_help(const std::string& word) {
  return word == "help" || word == "--help" || word == "-h";
}

int dispatch(const words& arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first.empty()) {
    write_all(STDERR_FILENO, general_help());
    return exit_refused;
  }
  if (first == "version" || first == "--version" || first == "-V") {
    print("ccbox " CCBOX_VERSION "\n");
    return 0;
  }
  const bool asks_help = is_help(first);
  if (asks_help && (arguments.size() == 1 || is_help(arguments[1]) || arguments[1] == "version")) {
    print(general_help());
    return 0;
  }
  const words named(arguments.begin() + (asks_help ? 1 : 0), arguments.end());
  for (const command_entry& command : all_commands()) {
    const std::string name = command.name;
    const auto space = name.find(' ');
    if (named[0] != name.substr(0, space)) continue;
    if (space != std::string::npos && (named.size() < 2 || named[1] != name.substr(space + 1))) continue;
    if (asks_help) return command.run({"--help"});
    if (command.run == run_command) take_heap_at_once();
    return command.run(words(named.begin() + (space == std::string::npos ? 1 : 2), named.end()));
  }
  if (named[0] == "plugin") {
    if (asks_help || (named.size() > 1 && is_help(named[1]))) {
      plugin_new_command({"--help"});
      print("\n");
      return plugin_test_command({"--help"});
    }
    return report({error_code::invalid_argument, "`plugin` needs `new NAME` or `test FILE`",
                   "`ccbox plugins` lists the plugins that are there"});
  }
  return report({error_code::invalid_argument, "unknown command " + quoted(named[0]),
                 "`ccbox help` lists the commands; to run a program, say `ccbox run -- PROGRAM`"});
}

}  // namespace
}  // namespace ccbox

int main(int argc, char** argv) {
  ccbox::open_standard_descriptors();
  ccbox::tolerate_failing_writes();
  try {
    return ccbox::exit_code(ccbox::dispatch({argv + std::min(argc, 1), argv + argc}));
  } catch (const boost::system::system_error& e) {
    ccbox::error failed = ccbox::system_error("", "", e.code().value());
    failed.what = std::string("internal error: ") + e.what();
    return ccbox::report(failed);
  } catch (const std::exception& e) {
    return ccbox::report({ccbox::error_code::failed, std::string("internal error: ") + e.what(), {}});
  }
}
