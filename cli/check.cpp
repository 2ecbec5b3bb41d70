#include <boost/json.hpp>

#include "check.hpp"
#include "commands.hpp"
#include "context.hpp"
#include "output.hpp"
#include "policy.hpp"
#include "spec_options.hpp"

namespace ccbox {

namespace json = boost::json;

namespace {

const char* yes_or_no(bool value) {
  return value ? "yes" : "no";
}

const char* answer_word(path_operation::verdict verdict) {
  switch (verdict) {
    case path_operation::verdict::succeed:
      return "yes";
    case path_operation::verdict::depend:
      return "depends";
    case path_operation::verdict::fail:
      break;
  }
  return "no";
}

// Which layer holds a rule, by the plan of the backend that would serve the launch.
struct enforcement {
  std::vector<std::string> layers;
  std::string nobody;  // why there is no such plan

  std::string of(std::size_t rule) const {
    if (!nobody.empty()) return "nobody: " + nobody;
    return rule < layers.size() && !layers[rule].empty() ? layers[rule] : "nobody";
  }
};

enforcement find_layers(const config_options& config, const host_facts& host, const policy& rules) {
  if (rules.backend_request == "none") return {};
  const auto context = load_context(config, CCBOX_PROBE_QUICK, host, plugin_choice::needed);
  if (!context) return {{}, context.error().what};
  auto chosen = (*context)->plugins->select_backend(rules.backend_request);
  if (!chosen) return {{}, chosen.error().what};
  auto made = (*chosen)->make_plan(rules, (*context)->parts.init);
  if (!made) return {{}, made.error().what};
  return {std::move(made->layers), {}};
}

std::string describe(const rule& r) {
  std::string text = std::string(to_string(r.kind));
  if (r.kind == rule_kind::mount) text += r.read_only ? " (read-only)" : " (read-write)";
  if (r.condition != name_condition::none) text += " (vetted: " + std::string(to_string(r.condition)) + ")";
  return text + " " + quoted(r.path) + ": " + printable(r.reason);
}

void print_text(const policy& rules, const std::string& path, const path_answer& answer,
                const enforcement& by) {
  std::string text = quoted(path) + "\n";
  text += aligned({{"visible", yes_or_no(answer.visible)},
                   {"readable", yes_or_no(answer.readable)},
                   {"writable", yes_or_no(answer.writable)},
                   {"creatable", yes_or_no(answer.creatable)},
                   {"because", printable(answer.explanation)}},
                  "  ");
  for (const std::size_t index : answer.deciding_rules)
    text += "  rule " + describe(rules.rules.at(index)) + " (" + printable(by.of(index)) + ")\n";
  std::vector<std::vector<std::string>> rows;
  for (const path_operation& each : answer.operations) {
    std::string why = printable(each.why);
    if (each.rule) why += (why.empty() ? "" : "; ") + printable(by.of(*each.rule));
    rows.push_back({std::string(each.name), answer_word(each.may), why});
  }
  if (!rows.empty()) text += "  what comes of it:\n" + aligned(rows, "    ");
  print(text);
}

json::value to_json(const policy& rules, const std::string& path, const path_answer& answer,
                    const enforcement& by) {
  json::array deciding, operations;
  for (const path_operation& each : answer.operations) {
    json::object one{{"operation", each.name}, {"answer", answer_word(each.may)}, {"why", each.why}};
    if (each.rule) {
      one["rule"] = rules.rules.at(*each.rule).path;
      one["reason"] = rules.rules.at(*each.rule).reason;
      one["enforcedBy"] = by.of(*each.rule);
    }
    operations.push_back(std::move(one));
  }
  for (const std::size_t index : answer.deciding_rules) {
    const rule& r = rules.rules.at(index);
    deciding.push_back(json::object{{"kind", to_string(r.kind)},
                                    {"path", r.path},
                                    {"readOnly", r.read_only},
                                    {"origin", to_string(r.origin)},
                                    {"condition", to_string(r.condition)},
                                    {"reason", r.reason}});
  }
  return json::object{{"path", path},
                      {"visible", answer.visible},
                      {"readable", answer.readable},
                      {"writable", answer.writable},
                      {"creatable", answer.creatable},
                      {"explanation", answer.explanation},
                      {"rules", std::move(deciding)},
                      {"operations", std::move(operations)}};
}

constexpr const char* path_summary =
    "Tells whether a path, as seen inside, may be read, written or created, and which rules say so. With "
    "--read, --write or --create the exit code is 0 if all that was asked for may be done, else 1.";
constexpr const char* domain_summary =
    "Tells whether a destination may be reached, on port 443 unless it says another, and which rule says so. "
    "The exit code is 0 if it may be reached, else 1.";

}  // namespace

int check_command(const words& arguments) {
  spec_options wanted;
  config_options config;
  bool as_json = false, read = false, write = false, create = false;
  const words alone(arguments.begin(),
                    arguments.begin() + std::min<std::ptrdiff_t>(1, std::ssize(arguments)));
  const bool asks_domain = alone == words{"domain"}, asks_path = alone == words{"path"};
  option_parser parser("check",
                       asks_domain ? "domain HOST[:PORT] [options]"
                       : asks_path ? "path PATH [options]"
                                   : "path PATH | domain HOST[:PORT] [options]",
                       asks_domain ? domain_summary
                       : asks_path ? path_summary
                                   : std::string(path_summary) + " " + domain_summary,
                       word_form::operands);
  parser.group("Question");
  if (!asks_domain) {
    parser.flag("--read", read, "May it be read?");
    parser.flag("--write", write, "May what is there be changed?");
    parser.flag("--create", create, "May a new file of that name be made?");
  }
  parser.flag("--json", as_json, "Print one JSON document");
  declare(parser, wanted);
  declare(parser, config);
  if (!asks_domain && !asks_path && !alone.empty() && !alone[0].starts_with('-'))
    return report({error_code::invalid_argument, "cannot check " + quoted(alone[0]),
                   "ask for `path PATH` or `domain HOST[:PORT]`"});
  const operands expected =
      asks_domain ? operands{{"domain", "HOST[:PORT]"}, false, "ccbox check domain example.com"}
      : alone.empty()
          ? operands{{"path PATH | domain HOST[:PORT]"}, false, "ccbox check path src/main.c --write"}
          : operands{{"path", "PATH"}, false, "ccbox check path src/main.c --write"};
  parsed p = parse_or_report(parser, arguments, expected);
  if (p.finished) return p.exit_code;
  const bool is_domain = p.rest[0] == "domain";
  if (p.rest[0] != "path" && !is_domain) {
    return report({error_code::invalid_argument, "cannot check " + quoted(p.rest[0]), parser.usage()});
  }

  const host_facts host = gather_host_facts();
  auto sandbox = build_request(wanted, host);
  if (!sandbox) return report(sandbox.error());
  if (is_domain) {
    if (read || write || create) {
      return report({error_code::invalid_argument, "--read, --write and --create are questions about a path",
                     parser.usage()});
    }
    auto context = load_context(config, CCBOX_PROBE_QUICK, host);
    if (!context) return report(context.error());
    (*context)->ticketing = wanted.ticketing;
    return check_domain(**context, *sandbox, p.rest[1], as_json);
  }
  auto path = absolute_path(p.rest[1], host);
  if (!path) return report(path.error());
  auto context = load_policy_context(config, host);
  if (!context) return report(context.error());
  context->ticketing = wanted.ticketing;
  auto compiled = compile_policy(sandbox->spec, context->host, context->config, context->sources());
  if (!compiled) return report(sandbox->origins.translated(compiled.error()));

  const path_answer answer = check_path(*compiled, *path);
  const auto by = find_layers(config, host, *compiled);
  if (as_json)
    print_json(to_json(*compiled, *path, answer, by));
  else
    print_text(*compiled, *path, answer, by);
  const bool granted =
      (!read || answer.readable) && (!write || answer.writable) && (!create || answer.creatable);
  return granted ? 0 : 1;
}

}  // namespace ccbox
