#include "plan.hpp"

#include <boost/json.hpp>

#include "result.hpp"
#include "utf8.hpp"

namespace ccbox {

namespace {

// JSON is UTF-8: bytes that are not (a path may hold any) are shown escaped.
boost::json::string text_of(const std::string& bytes) {
  return boost::json::string(is_utf8(bytes) ? bytes : quoted(bytes));
}

}  // namespace

bool has_floor(const plan& p) {
  const auto& words = p.argv;
  return words.size() > 4 && words[words.size() - 4] == "--floor" && words[words.size() - 2] == "--broker";
}

boost::json::value to_json(const plan& p) {
  boost::json::array argv, env, files, paths, enforced, layers;
  for (const auto& argument : p.argv)
    argv.emplace_back(text_of(argument));
  for (const auto& [name, value] : p.env)
    env.push_back({{"name", text_of(name)}, {"value", text_of(value)}});
  for (const auto& file : p.files)
    files.push_back({{"fd", file.number}, {"label", text_of(file.label)}, {"bytes", text_of(file.bytes)}});
  for (const auto& path : p.paths)
    paths.push_back({{"fd", path.number}, {"hostPath", text_of(path.host_path)}});
  for (const auto& name : rule_bit_names(p.enforced))
    enforced.emplace_back(name);
  for (const auto& layer : p.layers)
    layers.emplace_back(text_of(layer));
  return {{"plugin", p.plugin},
          {"kind", p.kind},
          {"argv", std::move(argv)},
          {"env", std::move(env)},
          {"files", std::move(files)},
          {"paths", std::move(paths)},
          {"denialsFd", p.denials > 0 ? boost::json::value(p.denials) : boost::json::value(nullptr)},
          {"enforced", std::move(enforced)},
          {"layers", std::move(layers)},
          {"identityUserns", p.identity_userns},
          {"unconfined", p.unconfined}};
}

}  // namespace ccbox
