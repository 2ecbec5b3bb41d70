// A fuzz target: a function that takes any bytes and aborts with a message when a promise about them does not
// hold.
//
// Each *_fuzz.cpp registers one. Two programs run them: a libFuzzer program for each (preset fuzz), and
// replay, which takes the checked-in corpus through all of them in every preset (ctest: fuzz.NAME).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace fuzz {

struct target {
  std::string_view name;
  void (*run)(std::string_view input);
};

std::vector<target>& all_targets();

struct registered {
  registered(std::string_view name, void (*run)(std::string_view)) { all_targets().push_back({name, run}); }
};

// Aborts, so that libFuzzer keeps the input and a sanitizer prints the stack.
void require(bool holds, std::string_view promise);

// An error that may be shown: it names something, is one line of printable UTF-8, and has one of these codes.
void require_good_error(const ccbox::error& e, std::initializer_list<ccbox::error_code> codes);

}  // namespace fuzz
