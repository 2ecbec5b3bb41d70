// The commands of ccbox. Each takes the words after its name, prints its answer and returns the exit code of
// the program; a malformed command line or a failure is reported and answers exit_refused.
#pragma once

#include <string>
#include <vector>

#include "option_parser.hpp"

namespace ccbox {

using words = std::vector<std::string>;

struct command_entry {
  const char* name;  // "plugin new" has two words
  const char* summary;
  int (*run)(const words& arguments);
};
const std::vector<command_entry>& all_commands();  // in main.cpp, in the order of the help

int run_command(const words& arguments);
int wrap_command(const words& arguments);
int explain_command(const words& arguments);
int check_command(const words& arguments);
int probe_command(const words& arguments);
int plugins_command(const words& arguments);
int doctor_command(const words& arguments);
int plugin_new_command(const words& arguments);
int plugin_test_command(const words& arguments);
int proxy_command(const words& arguments);
int net_connect_command(const words& arguments);

// The words that a command takes besides its options.
struct operands {
  words names;               // each must be there, such as PATH
  bool more = false;         // any number may follow
  const char* example = "";  // a whole command line
};

// Parses; prints the help or the error. The exit code if the command is over with that, else the words.
struct parsed {
  bool finished = false;
  int exit_code = 0;
  words rest;
};
parsed parse_or_report(option_parser& parser, const words& arguments, const operands& expected);

}  // namespace ccbox
