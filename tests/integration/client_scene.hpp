// `ccbox run` for a client tool, and what the tool may reach: an origin for http, https and ssh on loopback
// that is called allowed.test, by a DNS server of the test's own. denied.test is on no list and has no
// address. Nothing beyond loopback is contacted.
//
// The tool runs under bubblewrap in `work`, where ca.pem is the authority of the origin's certificate.
#pragma once

#include <memory>
#include <string>

#include "cli_support.hpp"
#include "support/dns_responder.hpp"

namespace ccbox::test {

class client_scene {
 public:
  // The origin serves one package of each kind that tests/support/make-client-packages knows.
  explicit client_scene(const arguments& packages = {});

  // Named by absolute paths, tools are the system's: a user's own below the home directory are not in the
  // enclosure.
  finished run(const arguments& command, const arguments& options = {}) const;
  finished run_script(const std::string& script, const arguments& options = {}) const;

  // "allowed.test:PORT", and the same port of denied.test.
  std::string allowed(const std::string& scheme) const;
  std::string denied(const std::string& scheme) const;
  // scheme://allowed.test:PORT/path, and of denied.test.
  std::string at_allowed(const std::string& scheme, const std::string& path = "hello.txt") const;
  std::string at_denied(const std::string& scheme, const std::string& path = "hello.txt") const;

  // How `ccbox run` ends when denied.test was asked for: the line but for its "ccbox: refused a connection",
  // for some tools ask twice.
  std::string reported(const std::string& scheme) const;
  // Denied names cause no query.
  unsigned questions_for_denied() const { return names_.questions("denied.test"); }

  std::string work() const { return dir_ / "work"; }
  std::string authority() const { return work() + "/ca.pem"; }
  std::string known_host() const;  // the origin's line of known_hosts
  void write(const std::string& name, const std::string& text) const { dir_.write("work/" + name, text); }
  const arguments& files() const { return files_; }  // --plugins and --egress-config

 private:
  std::string word_of_origin(const std::string& key) const;
  void start_origin();

  temporary_directory dir_;
  dns_responder names_;
  std::unique_ptr<running> origin_;
  arguments files_;
};

}  // namespace ccbox::test
