#include "workload.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "measure.hpp"

namespace fs = std::filesystem;

namespace ccbox::bench {

namespace {

constexpr int repository_files = 3500, archive_files = 10000, packages = 200, files_of_package = 20;
constexpr long many = 20000, some = 2000;

workload calls(const std::string& kind, const std::string& title, double target, long count) {
  return {kind, title, target, count, {"calls", kind, std::to_string(count)}, {"calls"}, true};
}

workload command(const std::string& name, const std::string& title, double target,
                 const std::string& preparation, int times, const std::string& line,
                 std::vector<std::string> comes_to_be = {}) {
  return {name,
          title,
          target,
          1,
          {"run", preparation, std::to_string(times), "/bin/sh", "-ec", line},
          std::move(comes_to_be),
          preparation != ":"};
}

void need(bool done, const std::string& what) {
  if (done) return;
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

void shell(const fs::path& directory, const std::string& line) {
  run_command({"/bin/sh", "-ec", "cd '" + directory.string() + "'\n" + line});
}

// Lines of text, different for each `seed`; sizes as in source trees.
void write_text(const fs::path& path, unsigned seed, unsigned most_lines) {
  std::ofstream out(path);
  for (unsigned line = 0, value = seed * 2654435761u + 1; line < 1 + seed * 31 % most_lines; ++line) {
    value = value * 1664525u + 1013904223u;
    out << "line " << line << " of " << seed << ": " << value << '\n';
  }
}

void write_files(const fs::path& top, int count, unsigned salt, unsigned most_lines) {
  for (int i = 0; i < count; ++i) {
    const auto directory = top / ("part" + std::to_string(i / 100));
    if (i % 100 == 0) fs::create_directories(directory);
    write_text(directory / ("file" + std::to_string(i)), static_cast<unsigned>(i) + salt, most_lines);
  }
}

void make_repositories(const fs::path& top) {
  const std::string commit =
      "git -c gc.auto=0 -c user.name=bench -c user.email=bench@example.invalid commit -q -m files\n";
  const auto tree = top / "tree";
  fs::create_directory(tree);
  write_files(tree, repository_files, 1, 60);
  shell(tree,
        "git init -q -b one .\n git config gc.auto 0\n git add .\n" + commit + "git checkout -q -b two");
  write_files(tree, repository_files, 100000, 60);
  shell(tree, "git add .\n" + commit + "git checkout -q one\n cd ..\n git clone -q --bare tree origin.git");
}

void make_packages(const fs::path& top) {
  fs::copy_file(CCBOX_BENCH_SOURCES "/registry.js", top / "registry.js");
  fs::create_directory(top / "packages");
  shell(top, "node registry.js make packages " + std::to_string(packages) + " " +
                 std::to_string(files_of_package));
  fs::create_directory(top / "app");
  std::ofstream out(top / "app/package.json");
  out << R"({"name": "app", "version": "1.0.0", "dependencies": {)";
  for (int i = 0; i < packages; ++i)
    out << (i ? ", " : "") << "\"part-" << i << "\": \"1.0.0\"";
  out << "}}\n";
}

}  // namespace

const std::vector<workload>& workloads() {
  static const std::vector<workload> all = {
      calls("read-open", "open for reading, close", 1.05, many),
      calls("stat", "stat", 1.05, many),
      calls("create", "open that creates, close", 6, some),
      calls("rename", "rename", 12, some),
      calls("write-open", "open of an existing file for writing, close", 10, some),
      calls("unlink", "unlink", 0, some),
      calls("mkdir", "mkdir", 0, some),
      calls("umask", "umask: the way to the broker and back", 0, many),
      command("compile", "cmake, ninja: a C project of 40 modules", 1.02, ":", 1,
              "cmake -G Ninja -S project -B build; ninja -C build", {"build"}),
      command("status", "git status, 3,500 files, thirty times", 1.03, ":", 30, "git -C tree status"),
      command("grep", "grep -r, 3,500 files, ten times", 1.03, ":", 10, "! grep -r 'no such line' tree"),
      command("checkout", "git checkout of 3,500 files, there and back", 2, ":", 1,
              "git -C tree checkout -q two; git -C tree checkout -q one"),
      command("clone", "git clone of them, 7,000 loose objects", 2.5, ":", 1, "git clone -q origin.git copy",
              {"copy"}),
      command("untar", "tar -x, 10,000 small files", 3.5, "mkdir out", 1, "tar -xf files.tar -C out",
              {"out"}),
      command("remove", "rm -rf of them", 2, "mkdir out; tar -xf files.tar -C out", 1, "rm -rf out", {"out"}),
      command(
          "npm", "npm install, 200 packages of 20 files", 1.3,
          "mkfifo /tmp/said; node registry.js serve packages >/tmp/said & read ready </tmp/said", 1,
          "cd app; npm install --registry http://127.0.0.1:4873 --no-audit --no-fund --no-update-notifier",
          {"app/node_modules", "app/package-lock.json"}),
  };
  return all;
}

void furnish(const std::string& directory, const std::string& within) {
  const fs::path top(directory);
  std::error_code failure;
  fs::copy_file(within, top / "within", failure);
  need(!failure, "copy '" + within + "': " + failure.message());
  make_repositories(top);
  fs::create_directory(top / "out");
  write_files(top / "out", archive_files, 1, 20);
  shell(top / "out", "tar -cf ../files.tar .\n cd ..\n rm -rf out");
  shell(top, "sh '" CCBOX_BENCH_SOURCES "/../tests/support/make-c-project' project 40");
  make_packages(top);
}

}  // namespace ccbox::bench
