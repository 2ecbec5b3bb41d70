// What the usual client programs and libraries make of a session's proxies, with the environment that it
// gives them.
#include <algorithm>
#include <sstream>

#include "client_scene.hpp"

using namespace ccbox::test;

namespace {

const std::string by_ccbox = "Forbidden (ccbox: blocked-by-allowlist)";
const std::string no_name = "Temporary failure in name resolution";

// The line that is the body of a refusal.
std::string explained(const std::string& to) {
  return to + " is refused: no rule allows it; allow it with --allow-domain " + to + " or egressAllowlist\n";
}

}  // namespace

TEST_CASE("curl reaches what is allowed, through either proxy") {
  const client_scene s;
  const auto curl = [&](const std::string& more, const std::string& url) {
    return s.run_script("exec curl -sS --cacert ca.pem " + more + " " + url);
  };
  CHECK(curl("", s.at_allowed("http")).out == "hello\n");
  CHECK(curl("", s.at_allowed("https")).out == "hello\n");
  CHECK(curl("-x $ALL_PROXY", s.at_allowed("http")).out == "hello\n");
  CHECK(curl("-x $ALL_PROXY", s.at_allowed("https")).out == "hello\n");
  // Two requests on one connection to the proxy.
  CHECK(curl("", s.at_allowed("http") + " " + s.at_allowed("http")).out == "hello\nhello\n");
}

TEST_CASE("curl is refused by name, and says who refused") {
  const client_scene s;
  const auto curl = [&](const std::string& more, const std::string& url) {
    return s.run_script("exec curl -sS --cacert ca.pem " + more + " " + url);
  };
  const auto plain = curl("", s.at_denied("http"));
  CHECK(plain.out == explained(s.denied("http")));
  CHECK(contains(plain.err, s.reported("http")));
  CHECK(curl("--fail", s.at_denied("http")).code == 22);

  const auto tunnelled = curl("", s.at_denied("https"));
  CHECK(tunnelled.code == 56);
  CHECK(contains(tunnelled.err, "CONNECT tunnel failed, response 403"));
  CHECK(contains(tunnelled.err, s.reported("https")));

  const auto socks = curl("-x $ALL_PROXY", s.at_denied("https"));
  CHECK(socks.code == 97);
  CHECK(contains(socks.err, "to denied.test. (2)"));  // 2: not allowed by the ruleset
  CHECK(contains(socks.err, s.reported("https")));
  CHECK(s.questions_for_denied() == 0);
}

TEST_CASE("wget reaches what is allowed and is refused the rest by its usual exit codes") {
  const client_scene s;
  const auto wget = [&](const std::string& url) {
    return s.run({"wget", "-nv", "-t1", "-O-", "--ca-certificate=ca.pem", url});
  };
  CHECK(wget(s.at_allowed("http")).out == "hello\n");
  CHECK(wget(s.at_allowed("https")).out == "hello\n");
  const auto plain = wget(s.at_denied("http"));
  CHECK(plain.code == 8);
  CHECK(contains(plain.err, "ERROR 403: " + by_ccbox));
  CHECK(contains(plain.err, s.reported("http")));
  const auto tunnelled = wget(s.at_denied("https"));
  CHECK(tunnelled.code == 4);
  CHECK(contains(tunnelled.err, "Proxy tunneling failed: " + by_ccbox));
  CHECK(contains(tunnelled.err, s.reported("https")));
}

TEST_CASE("python's urllib reaches what is allowed and raises with the reason for the rest") {
  const client_scene s;
  const auto urllib = [&](const std::string& url) {
    return s.run({"/usr/bin/python3", "-c",
                  "import sys, urllib.request\n"
                  "try: print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')\n"
                  "except urllib.error.URLError as error: sys.exit(str(error))\n",
                  url},
                 {"--env", "SSL_CERT_FILE=ca.pem"});
  };
  CHECK(urllib(s.at_allowed("http")).out == "hello\n");
  CHECK(urllib(s.at_allowed("https")).out == "hello\n");
  const auto plain = urllib(s.at_denied("http"));
  CHECK(plain.code == 1);
  CHECK(contains(plain.err, "HTTP Error 403: " + by_ccbox));
  const auto tunnelled = urllib(s.at_denied("https"));
  CHECK(tunnelled.code == 1);
  CHECK(contains(tunnelled.err, "Tunnel connection failed: 403 " + by_ccbox));
  CHECK(contains(tunnelled.err, s.reported("https")));
}

TEST_CASE("python's requests reaches what is allowed and raises with the reason for the rest") {
  const client_scene s;
  const auto requests = [&](const std::string& url) {
    return s.run({"/usr/bin/python3", "-c",
                  "import sys, requests\n"
                  "try: answer = requests.get(sys.argv[1])\n"
                  "except requests.RequestException as error: sys.exit(str(error))\n"
                  "print(answer.text, end='')\n"
                  "if not answer.ok: sys.exit(answer.reason)\n",
                  url},
                 {"--env", "REQUESTS_CA_BUNDLE=ca.pem"});
  };
  CHECK(requests(s.at_allowed("http")).out == "hello\n");
  CHECK(requests(s.at_allowed("https")).out == "hello\n");
  const auto plain = requests(s.at_denied("http"));
  CHECK(plain.out == explained(s.denied("http")));
  CHECK(contains(plain.err, by_ccbox));
  const auto tunnelled = requests(s.at_denied("https"));
  CHECK(tunnelled.code == 1);
  CHECK(contains(tunnelled.err, "Tunnel connection failed: 403 " + by_ccbox));
  CHECK(contains(tunnelled.err, s.reported("https")));
}

TEST_CASE("perl's HTTP::Tiny reaches what is allowed and gets the explanation for the rest") {
  const client_scene s;
  const auto tiny = [&](const std::string& url) {
    return s.run({"perl", "-MHTTP::Tiny", "-e",
                  "my $r = HTTP::Tiny->new->get($ARGV[0]); print $r->{content}; "
                  "$r->{success} or die $r->{status}, ' ', $r->{reason}",
                  url});
  };
  CHECK(tiny(s.at_allowed("http")).out == "hello\n");
  const auto refused = tiny(s.at_denied("http"));
  CHECK(refused.code != 0);
  CHECK(refused.out == explained(s.denied("http")));
  CHECK(contains(refused.err, "403 " + by_ccbox));
}

TEST_CASE("java's two clients reach what is allowed, by properties, and raise with the reason for the rest") {
  const client_scene s;
  s.write("Fetch.java", R"(
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

class Fetch {
  public static void main(String[] urls) throws Exception {
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream file = new FileInputStream("ca.pem")) {
      trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(trusted);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    SSLContext.setDefault(context);
    for (String url : urls)
      try (InputStream body = URI.create(url).toURL().openStream()) {
        System.out.print(new String(body.readAllBytes()));
      } catch (IOException refused) {
        System.out.println(refused.getMessage());
      }
    HttpClient client = HttpClient.newHttpClient();
    for (String url : urls)
      try {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
      } catch (IOException refused) {
        System.out.println(refused.getMessage());
      }
  }
}
)");
  const auto done = s.run({"java", "-XX:TieredStopAtLevel=1", "Fetch.java", s.at_allowed("http"),
                           s.at_allowed("https"), s.at_denied("http"), s.at_denied("https")});
  CHECK(done.out == "hello\nhello\nServer returned HTTP response code: 403 for URL: " + s.at_denied("http") +
                        "\nUnable to tunnel through proxy. Proxy returns \"HTTP/1.1 403 " + by_ccbox +
                        "\"\nhello\nhello\n" + explained(s.denied("http")) + "Tunnel failed, got: 403\n");
  CHECK(contains(done.err, "Picked up JAVA_TOOL_OPTIONS: "));
  CHECK(contains(done.err, s.reported("http")));
  CHECK(contains(done.err, s.reported("https")));
}

TEST_CASE("node's fetch uses the proxies if it is new enough, and fails at the name if it is not") {
  const client_scene s;
  std::istringstream version(s.run({"/usr/bin/node", "-p", "process.versions.node"}).out);
  int major = 0, minor = 0;
  REQUIRE((version >> major && version.get() == '.' && version >> minor));
  const bool knows_proxies = major >= 24 || (major == 22 && minor >= 21);
  CAPTURE(major);
  const auto fetch = [&](const std::string& url) {
    return s.run({"/usr/bin/node", "-e",
                  "fetch('" + url + "').then(a => a.text()).then(t => process.stdout.write(t))"},
                 {"--env", "NODE_EXTRA_CA_CERTS=ca.pem"});
  };
  const auto allowed = fetch(s.at_allowed("https"));
  const auto denied = fetch(s.at_denied("https"));
  CHECK(denied.code == 1);
  if (knows_proxies) {
    CHECK(allowed.out == "hello\n");
    CHECK(contains(denied.err, s.reported("https")));
  } else {
    CHECK(allowed.code == 1);
    CHECK(contains(allowed.err, "getaddrinfo EAI_AGAIN allowed.test"));
    CHECK(contains(denied.err, "getaddrinfo EAI_AGAIN denied.test"));
  }
}

TEST_CASE("openssl s_client goes where it is told to, by -proxy") {
  const client_scene s;
  const auto to = [&](const std::string& host_and_port) {
    return s.run_script(
        "printf 'GET /hello.txt HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -ign_eof -CAfile ca.pem "
        "-verify_return_error -servername allowed.test -proxy ${HTTPS_PROXY#http://} -connect " +
        host_and_port);
  };
  CHECK(contains(to(s.allowed("https")).out, "\r\n\r\nhello\n"));
  const auto refused = to(s.denied("https"));
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "HTTP CONNECT failed, reason= 403 " + by_ccbox));
  CHECK(contains(refused.err, s.reported("https")));
}

TEST_CASE("what knows no proxy fails at the name and in no other way") {
  const client_scene s;
  const auto python = [&](const std::string& code) { return s.run({"/usr/bin/python3", "-c", code}); };
  const auto port = s.allowed("http").substr(s.allowed("http").find(':') + 1);
  const auto library = python("import http.client\nhttp.client.HTTPConnection('allowed.test', " + port +
                              ").request('GET', '/hello.txt')\n");
  CHECK(library.code == 1);
  CHECK(contains(library.err, no_name));
  const auto openssl = s.run({"openssl", "s_client", "-connect", s.allowed("https")});
  CHECK(openssl.code == 1);
  CHECK(contains(openssl.err, no_name));
  // The origin's address is the loopback's, and that is the enclosure's own.
  const auto address =
      python("import socket\nsocket.create_connection(('127.0.0.1', " + port + "), timeout=5)\n");
  CHECK(address.code == 1);
  CHECK(contains(address.err, "Connection refused"));
}

TEST_CASE("doctor has a line for each of these tools") {
  const client_scene s;
  const auto doctor = run(arguments{ccbox_program(), "doctor"} + s.files());
  for (const std::string tool : {"curl", "wget", "git", "ssh", "python3", "pip3", "node", "npm", "cargo",
                                 "go", "java", "perl", "apt-get", "openssl"}) {
    CAPTURE(tool);
    CHECK(contains(doctor.out, "proxies: " + tool + " "));
  }
}
