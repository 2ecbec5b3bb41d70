#include "option_parser.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <set>
#include <utility>

namespace ccbox {

struct option_parser::impl {
  impl(std::string command, std::string usage_text, std::string summary, word_form words)
      : name(std::move(command)), usage(std::move(usage_text)), form(words), app(std::move(summary), name) {
    app.set_help_flag();
    app.add_flag("-h,--help", help, "Print this help and exit");
  }

  error usage_error(std::string what) const {
    std::string hint = "`ccbox " + name + " --help` lists the options";
    if (form == word_form::command) hint += "; put `--` before a command that begins with a dash";
    return {error_code::invalid_argument, std::move(what), std::move(hint)};
  }

  std::string name;
  std::string usage;
  word_form form;
  std::string current_group = "Options";
  bool help = false;
  CLI::App app;
};

option_parser::option_parser(std::string name, std::string usage, std::string summary, word_form form)
    : impl_(std::make_unique<impl>(std::move(name), std::move(usage), std::move(summary), form)) {}
option_parser::~option_parser() = default;

void option_parser::group(const std::string& title) {
  impl_->current_group = title;
}

void option_parser::flag(const std::string& names, bool& out, const std::string& help) {
  impl_->app.add_flag(names, out, help)->group(impl_->current_group)->disable_flag_override();
}

void option_parser::value(const std::string& names, std::optional<std::string>& out, const std::string& type,
                          const std::string& help) {
  // The callback form takes the words as they are; CLI11's own conversions give brackets and braces a
  // meaning.
  impl_->app
      .add_option(names,
                  CLI::callback_t([&out](const CLI::results_t& words) { return out = words.at(0), true; }),
                  help)
      ->type_name(type)
      ->group(impl_->current_group);
}

void option_parser::list(const std::string& names, std::vector<std::string>& out, const std::string& type,
                         const std::string& help, int values_each) {
  impl_->app
      .add_option(names, CLI::callback_t([&out](const CLI::results_t& words) { return out = words, true; }),
                  help)
      ->type_name(type)
      ->type_size(values_each)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(impl_->current_group);
}

result<std::vector<std::string>> option_parser::parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> options, words;
  std::set<const CLI::Option*> given;
  auto next = arguments.begin();
  while (next != arguments.end()) {
    const std::string& word = *next;
    if (word == "--") {
      words.insert(words.end(), next + 1, arguments.end());
      break;
    }
    if (word.size() < 2 || word.front() != '-') {
      if (impl_->form == word_form::command) {
        words.assign(next, arguments.end());
        break;
      }
      words.push_back(word);
      ++next;
      continue;
    }
    const bool is_long = word.starts_with("--");
    const auto equals = is_long ? word.find('=') : std::string::npos;
    const std::string option_name = is_long ? word.substr(0, equals) : word.substr(0, 2);
    const CLI::Option* option = impl_->app.get_option_no_throw(option_name);
    if (!option) return impl_->usage_error("unknown option " + ccbox::quoted(option_name));
    const int values = option->get_items_expected_min();
    if (values > 0 && option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw &&
        !given.insert(option).second)
      return impl_->usage_error(option_name + " is given twice");
    const bool attached = equals != std::string::npos || (!is_long && word.size() > 2);
    if (attached && (values != 1 || equals + 1 == word.size())) {
      return impl_->usage_error("option " + option_name + " takes " +
                                (values == 0 ? "no value" : "its value as a word of its own") + ", not " +
                                ccbox::quoted(word));
    }
    const auto wanted = 1 + (attached ? 0 : values);
    // `--mount PATH -- COMMAND` would take the command for the rest of the mount.
    const bool cut_short = arguments.end() - next >= wanted && values > 1 &&
                           std::find(next, next + wanted, "--") != next + wanted;
    if (cut_short || arguments.end() - next < wanted) {
      return impl_->usage_error("option " + option_name + " needs " +
                                (values == 1 ? "a value" : std::to_string(values) + " values") + ": " +
                                option->get_type_name());
    }
    options.insert(options.end(), next, next + wanted);
    next += wanted;
  }
  try {
    std::reverse(options.begin(), options.end());
    impl_->app.parse(std::move(options));
  } catch (const CLI::Error& e) {
    return impl_->usage_error(e.what());
  }
  return words;
}

bool option_parser::help_requested() const {
  return impl_->help;
}

std::string option_parser::usage() const {
  return "usage: ccbox " + impl_->name + (impl_->usage.empty() ? "" : " " + impl_->usage);
}

std::string option_parser::help() const {
  CLI::Formatter formatter;
  formatter.column_width(34);
  std::string text = impl_->app.get_description() + "\n\n" + usage() + "\n" +
                     formatter.make_groups(&impl_->app, CLI::AppFormatMode::Normal);
  for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at))
    text.erase(at, 1);
  return text;
}

}  // namespace ccbox
