// Which option a field of the spec came from, so that an error about the field can be told in the words of
// the command line. A value; one thread.
#pragma once

#include <map>
#include <string>

#include "result.hpp"

namespace ccbox {

class option_origins {
 public:
  // `key` as errors name the field: "limits.memoryBytes", "bindMounts[2]". `typed`: the option's value.
  void add(std::string key, std::string option, std::string typed);

  // The same error; one that begins with a known key names the option and what was typed instead.
  error translated(error e) const;

 private:
  struct origin {
    std::string option, typed;
  };
  std::map<std::string, origin> origins_;
};

}  // namespace ccbox
