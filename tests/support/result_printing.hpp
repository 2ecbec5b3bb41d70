// Lets CHECK(a_result) print the error of a result<T> that should have been a value. Include it after
// doctest.h.
#pragma once

#include <doctest/doctest.h>

#include "result.hpp"

namespace doctest {

template <class T>
struct StringMaker<boost::system::result<T, ccbox::error>> {
  static String convert(const boost::system::result<T, ccbox::error>& r) {
    if (r) return "(a value)";
    return (std::string(ccbox::to_string(r.error().code)) + ": " + r.error().what).c_str();
  }
};

}  // namespace doctest
