#include "sandbox_spec.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "fuzz/target.hpp"

namespace {

void run(std::string_view text) {
  using ccbox::error_code;
  const auto spec = ccbox::parse_sandbox_spec(text);
  if (!spec)
    return fuzz::require_good_error(spec.error(), {error_code::invalid_argument, error_code::too_large});
  fuzz::require(ccbox::validate(*spec).has_value(), "a spec that was parsed is valid");
  const auto written = boost::json::serialize(ccbox::to_json(*spec));
  const auto again = ccbox::parse_sandbox_spec(written);
  fuzz::require(again.has_value(), "what is written can be read");
  fuzz::require(*again == *spec, "a spec comes back from JSON equal");
  fuzz::require(boost::json::serialize(ccbox::to_json(*again)) == written,
                "writing it again gives the same text");
  for (const auto& mount : spec->bind_mounts) {
    for (const auto& path : {mount.host_path, mount.guest_path}) {
      fuzz::require(path.starts_with('/') && path.find('\0') == path.npos,
                    "paths are absolute and without NUL");
    }
  }
  for (const auto bit : {CCBOX_RULE_FS_BINDS_ONLY, CCBOX_RULE_PID_ISOLATION})
    fuzz::require(!(ccbox::waived_bits(*spec) & bit), "a rule that may not be given up is not given up");
}

const fuzz::registered target("sandbox_spec", run);

}  // namespace
