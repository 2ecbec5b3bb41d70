#include <boost/json.hpp>

#include "commands.hpp"
#include "context.hpp"
#include "output.hpp"
#include "plugin_contract.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

const char* to_string(contract_check::outcome state) {
  switch (state) {
    case contract_check::outcome::passed:
      return "passed";
    case contract_check::outcome::not_applicable:
      return "not applicable";
    case contract_check::outcome::failed:
      break;
  }
  return "failed";
}

void print_check(const contract_check& check) {
  const tone how = check.state == contract_check::outcome::passed   ? tone::good
                   : check.state == contract_check::outcome::failed ? tone::bad
                                                                    : tone::attention;
  std::string text = toned(how, to_string(check.state)) + "  " + check.name + ": " + check.promise + "\n";
  if (!check.reason.empty()) text += "    " + printable(check.reason) + "\n";
  print(text);
}

json::value to_json(const contract_report& outcome) {
  json::array checks;
  for (const contract_check& check : outcome.checks) {
    checks.push_back(json::object{{"name", check.name},
                                  {"promise", check.promise},
                                  {"state", to_string(check.state)},
                                  {"reason", check.reason}});
  }
  return json::object{{"path", outcome.path}, {"passed", outcome.passed()}, {"checks", std::move(checks)}};
}

result<std::vector<std::pair<std::string, std::string>>> split_options(
    const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& word : given) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return error{error_code::invalid_argument, "--option " + quoted(word) + ": no `=` in it",
                   "--option KEY=VALUE"};
    }
    out.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return out;
}

}  // namespace

int plugin_test_command(const words& arguments) {
  std::vector<std::string> given;
  bool as_json = false;
  option_parser parser(
      "plugin test", "FILE [options]",
      "Runs the contract tests, which every plugin must pass, against a plugin file. "
      "Exit code 1 if one failed. The plugin's code runs in processes of its own, unconfined.",
      word_form::operands);
  parser.list("--option", given, "KEY=VALUE",
              "An option of the plugin, as the manifest would give it: create is called with them");
  parser.flag("--json", as_json, "Print one JSON document");
  parsed p = parse_or_report(parser, arguments, {{"FILE"}, false, "ccbox plugin test ./podman.so"});
  if (p.finished) return p.exit_code;
  auto options = split_options(given);
  if (!options) return report(options.error());
  auto path = absolute_path(p.rest[0], gather_host_facts());
  if (!path) return report(path.error());

  contract_options how;
  how.options = std::move(*options);
  auto outcome = run_plugin_contract(*path, how, as_json ? contract_sink() : contract_sink(print_check));
  if (!outcome) return report(outcome.error());
  if (as_json)
    print_json(to_json(*outcome));
  else
    print(outcome->passed() ? "The plugin keeps the contract.\n" : "The plugin breaks the contract.\n");
  return outcome->passed() ? 0 : 1;
}

}  // namespace ccbox
