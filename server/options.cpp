#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace ccbox::server {

namespace {

error bad(const std::string& what, const std::string& hint) {
  return {error_code::invalid_argument, what, hint};
}

result<bool> on_or_off(const std::string& source, const std::string& word) {
  if (word == "on") return true;
  if (word == "off") return false;
  return bad(source + ": no such value " + ccbox::quoted(word), "on or off");
}

std::optional<log_level> level_of(const std::string& word) {
  if (word == "debug") return log_level::debug;
  if (word == "info") return log_level::info;
  if (word == "warn") return log_level::warn;
  if (word == "error") return log_level::error;
  return std::nullopt;
}

}  // namespace

result<parsed_options> parse_options(const std::vector<std::string>& arguments,
                                     const std::optional<std::string>& sandbox_variable) {
  parsed_options out;
  server_options& o = out.options;
  std::optional<std::string> sandbox, level;
  bool version = false;
  CLI::App app("Serves agents' enclosures: launches, commands, events and terminals over a local API.",
               "cc_server");
  app.add_option("--sandbox", sandbox,
                 "on: wrap what is dispatched where this host offers a backend; off: never (on; the variable "
                 "CC_SERVER_SANDBOX says the same)")
      ->type_name("on|off");
  app.add_option("--state-directory", o.state_directory,
                 "Where the lock and the socket are, private to this user")
      ->type_name("DIR");
  app.add_option("--socket", o.socket, "Unix socket to serve on instead of the state directory's")
      ->type_name("PATH");
  app.add_option("--listen", o.listen, "Serve on this loopback address too, to holders of the token")
      ->type_name("ADDRESS:PORT");
  app.add_option("--token-file", o.token_file,
                 "File with the token for --listen, readable by its owner alone")
      ->type_name("FILE");
  app.add_option("--allow-origin", o.allowed_origins, "An Origin that browsers may send; may be repeated")
      ->type_name("ORIGIN");
  app.add_option("--plugins", o.files.plugins, "Manifest of the plugins instead of the installed one")
      ->type_name("FILE");
  app.add_option("--policy", o.files.policy, "Policy file instead of the installed one")->type_name("FILE");
  app.add_option("--egress-config", o.files.egress, "Egress file instead of the installed one")
      ->type_name("FILE");
  app.add_option("--log-level", level, "debug, info, warn or error (info)")->type_name("LEVEL");
  app.add_flag("--version", version, "Print the version");
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    out.exit_code = 0;
    return out;
  } catch (const CLI::ParseError& e) {
    return bad(printable(e.what()), "`cc_server --help` lists the options");
  }
  if (version) {
    std::fputs("cc_server " CCBOX_VERSION "\n", stdout);
    out.exit_code = 0;
    return out;
  }
  if (sandbox || sandbox_variable) {
    auto wanted =
        sandbox ? on_or_off("--sandbox", *sandbox) : on_or_off("CC_SERVER_SANDBOX", *sandbox_variable);
    if (!wanted) return wanted.error();
    o.sandbox = *wanted;
  }
  if (level) {
    const auto known = level_of(*level);
    if (!known)
      return bad("--log-level: no such level " + ccbox::quoted(*level), "debug, info, warn or error");
    o.level = *known;
  }
  if (o.listen && !o.token_file)
    return bad("--listen without --token-file: everybody on this host could connect",
               "write a long random word into a file of mode 0600 and name it with --token-file");
  if (o.token_file && !o.listen)
    return bad("--token-file without --listen: the Unix socket needs no token",
               "leave it out, or add --listen");
  return out;
}

}  // namespace ccbox::server
