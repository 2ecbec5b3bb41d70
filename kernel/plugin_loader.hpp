// Loads one plugin file without trusting its name: open, check, copy, seal, load the copy, keep it.
//
//  - Opened O_NOFOLLOW | O_NONBLOCK; a regular file; owned by root or this user; neither it nor its directory
//    is writable by group or others; sha256 as the manifest says; an ELF object whose symbol table exports
//    ccbox_plugin_v1 (read before any of its code runs).
//  - Copied into a sealed memfd and loaded from /proc/self/fd/N with N kept open for ever, so replacing,
//    truncating or deleting the file never harms the running process, and N is never reused for another
//    plugin.
//  - Never unloaded.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ccbox/plugin.h"
#include "manifest.hpp"
#include "result.hpp"

namespace ccbox {

class loaded_plugin {
 public:
  ~loaded_plugin();  // calls destroy
  loaded_plugin(const loaded_plugin&) = delete;
  loaded_plugin& operator=(const loaded_plugin&) = delete;

  const std::string& name() const;
  const std::string& version() const;
  const std::string& path() const;
  std::uint32_t abi_minor() const;
  ccbox_plugin* instance() const;
  const void* get_extension(std::string_view name) const;

 private:
  friend result<std::unique_ptr<loaded_plugin>> load_plugin(const manifest_entry&, const ccbox_host&);
  loaded_plugin();
  struct impl;
  std::unique_ptr<impl> impl_;
};

// `host` must outlive the plugin.
result<std::unique_ptr<loaded_plugin>> load_plugin(const manifest_entry& entry, const ccbox_host& host);

}  // namespace ccbox
