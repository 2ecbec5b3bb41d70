// The options of one command, declared into plain variables, parsed by CLI11 (which only this noun's source
// includes).
//
// Where the options end is decided here and not by guessing: an option is recognised by its declared name and
// takes exactly the values it was declared with. In `command` form the first word that is no option, or the
// word after `--`, begins the command, and nothing from there on is looked at. In `operands` form words and
// options may be mixed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace ccbox {

enum class word_form {
  command,   // [options] [--] command…
  operands,  // options and words in any order, `--` ends the options
};

class option_parser {
 public:
  // `name`: "run"; `usage`: what follows it in the usage line; `summary`: a sentence.
  option_parser(std::string name, std::string usage, std::string summary, word_form form);
  ~option_parser();
  option_parser(const option_parser&) = delete;
  option_parser& operator=(const option_parser&) = delete;

  // `names`: "-q,--quiet". The variables must outlive parse(). An option given twice is an error, but for
  // lists.
  void flag(const std::string& names, bool& out, const std::string& help);
  void value(const std::string& names, std::optional<std::string>& out, const std::string& type,
             const std::string& help);
  // One value each time the option is given; `values_each` times as many with more.
  void list(const std::string& names, std::vector<std::string>& out, const std::string& type,
            const std::string& help, int values_each = 1);
  void group(const std::string& title);  // of the options declared from here on

  // Fills the variables; answers the words that are no options. invalid_argument for a malformed command
  // line.
  result<std::vector<std::string>> parse(const std::vector<std::string>& arguments);
  bool help_requested() const;
  std::string help() const;
  std::string usage() const;  // one line

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace ccbox
