// A fresh directory of mode 0700, removed with everything in it at the end of the scope.
#pragma once

#include <string>
#include <string_view>

namespace ccbox::test {

class temporary_directory {
 public:
  temporary_directory();  // throws std::system_error
  ~temporary_directory();
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  const std::string& path() const { return path_; }  // absolute, no symbolic link in it
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Makes or replaces a file (and the directories that lead to it); returns its path.
  std::string write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace ccbox::test
