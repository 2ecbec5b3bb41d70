// Breaks the rule that no exception leaves a plugin, at the stage that THROW_AT names.
#include <stdexcept>
#include <string_view>

#include "ccbox/plugin.hpp"

namespace {

void perhaps(std::string_view stage) {
  if (stage == THROW_AT) throw std::runtime_error("boo");
}

ccbox_status create(const ccbox_host*, const ccbox_config*, ccbox_plugin** out, ccbox_text*) {
  perhaps("create");
  static int instance;
  *out = reinterpret_cast<ccbox_plugin*>(&instance);
  return CCBOX_OK;
}
void destroy(ccbox_plugin*) {
  perhaps("destroy");
}
const void* get_extension(ccbox_plugin*, ccbox_str) {
  perhaps("get_extension");
  return nullptr;
}

}  // namespace

extern "C" CCBOX_EXPORT const ccbox_plugin_descriptor* ccbox_plugin_v1() {
  perhaps("descriptor");
  static const ccbox_plugin_descriptor descriptor = {
      sizeof descriptor, CCBOX_ABI_MINOR, {"throwing", 8}, {"1", 1}, create, destroy, get_extension};
  return &descriptor;
}
