#include "commands.hpp"
#include "context.hpp"
#include "output.hpp"
#include "plugin_template.hpp"

namespace ccbox {

int plugin_new_command(const words& arguments) {
  std::optional<std::string> directory;
  option_parser parser(
      "plugin new", "NAME [options]",
      "Writes the source of a new backend plugin, with its tests, ready to build against the "
      "installed CMake package `ccbox`.",
      word_form::operands);
  parser.value("--directory", directory, "PATH",
               "Where, instead of a directory of that name in the current one");
  parsed p = parse_or_report(parser, arguments, {{"NAME"}, false, "ccbox plugin new podman"});
  if (p.finished) return p.exit_code;

  const std::string& name = p.rest[0];
  auto path = absolute_path(directory.value_or(name), gather_host_facts());
  if (!path) return report(path.error());
  if (auto written = write_plugin_project(name, *path); !written) return report(written.error());
  print("Wrote " + quoted(*path) + ". There, build and test it:\n" +
        "  cmake -S . -B build    # add -DCMAKE_PREFIX_PATH=PREFIX if ccbox is installed under another "
        "PREFIX\n" +
        "  cmake --build build\n" + "  ctest --test-dir build --output-on-failure\n" +
        "Its README.md says how to load it.\n");
  return 0;
}

}  // namespace ccbox
