// A server from boot to end, as its clients see it.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <filesystem>

#include "support/server_process.hpp"

using namespace ccbox::test;
namespace json = boost::json;

namespace {

std::string spec(const std::string& id, const std::string& directory) {
  return json::serialize(json::object{{"sessionId", id},
                                      {"workspaceId", "w"},
                                      {"bindMounts", json::array{json::object{{"hostPath", directory}}}}});
}

struct scene {
  temporary_directory work;
  server_process server;
  server_client client = server.client();

  void launch(const std::string& id) {
    const auto made = client.post("/v1/sandboxes", spec(id, work.path()));
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }
};

std::string text_at(const json::value& value, const char* key) {
  return std::string(value.at(key).as_string());
}

}  // namespace

TEST_CASE("a sandbox is launched, runs commands, is listed and destroyed") {
  scene s;
  CHECK(s.client.get("/healthz").body == "{\"status\":\"ok\"}\n");
  const auto made = s.client.post("/v1/sandboxes", spec("one", s.work.path()));
  REQUIRE_MESSAGE(made.status == 201, made.body);
  CHECK(made.header("Location") == "/v1/sandboxes/one");
  CHECK(text_at(made.json(), "state") == "warm");
  CHECK(s.client.post("/v1/sandboxes", spec("one", s.work.path())).status == 409);

  const auto started = s.client.post("/v1/sandboxes/one/exec",
                                     R"({"argv": ["sh", "-c", "cat > made; exit 3"], "input": "bytes"})");
  REQUIRE_MESSAGE(started.status == 201, started.body);
  const auto id = std::to_string(started.json().at("execId").to_number<int>());
  const auto ended = s.client.get("/v1/sandboxes/one/exec/" + id + "?waitMs=30000");
  REQUIRE(ended.status == 200);
  CHECK(ended.json().at("exitCode").to_number<int>() == 3);
  CHECK(read_file(s.work / "made") == "bytes");

  CHECK(s.client.get("/v1/sandboxes").json().at("sandboxes").as_array().size() == 1);
  const auto destroyed = s.client.ask("DELETE", "/v1/sandboxes/one");
  CHECK(text_at(destroyed.json(), "state") == "destroyed");
  CHECK(s.client.get("/v1/sandboxes/one").status == 404);
  CHECK(s.client.ask("DELETE", "/v1/sandboxes/one").status == 404);
}

TEST_CASE("a command's streams are on a socket: input, both outputs, signals and the exit code") {
  scene s;
  s.launch("one");
  auto stream = s.client.open("/v1/sandboxes/one/exec");
  REQUIRE(stream.status() == 101);
  REQUIRE(stream.send_text(R"({"argv": ["sh", "-c", "cat; echo problem >&2; kill -TERM $$"]})"));
  const auto hello = stream.receive();
  REQUIRE(hello);
  CHECK(text_at(json::parse(hello->data), "type") == "started");
  REQUIRE(stream.send_binary("through the pipe"));
  REQUIRE(stream.send_text(R"({"type": "eof"})"));
  std::string out, err;
  int code = -1;
  while (const auto message = stream.receive()) {
    if (!message->binary)
      code = json::parse(message->data).at("exitCode").to_number<int>();
    else
      (message->data[0] == 1 ? out : err) += message->data.substr(1);
  }
  CHECK(out == "through the pipe");
  CHECK(err == "problem\n");
  CHECK(code == 128 + SIGTERM);
  CHECK(stream.close_code() == 1000);
}

TEST_CASE("events are told to whoever watches, and again from any point that is asked for") {
  scene s;
  s.launch("one");
  REQUIRE(s.client.post("/v1/sandboxes/one/exec", R"({"argv": ["echo", "hello"]})").status == 201);
  auto watch = s.client.open("/v1/sandboxes/one/events?after=0");
  REQUIRE(watch.status() == 101);
  std::string types, lines;
  while (types.find("exit") == std::string::npos) {
    const auto message = watch.receive();
    REQUIRE(message);
    lines += message->data;
    types.clear();
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
      types += text_at(json::parse(lines.substr(at, lines.find('\n', at) - at)), "type") + " ";
  }
  CHECK(types == "starting ready stdout exit ");

  auto late = s.client.open("/v1/sandboxes/one/events?after=3");
  const auto rest = late.receive();
  REQUIRE(rest);
  CHECK(json::parse(rest->data).at("sequence").to_number<int>() == 4);
  CHECK(s.client.open("/v1/sandboxes/two/events").status() == 404);
}

TEST_CASE("SIGTERM ends the sessions and the server, and leaves nothing but the lock") {
  scene s;
  s.launch("one");
  REQUIRE(s.client.post("/v1/sandboxes/one/exec", R"({"argv": ["sleep", "1000"]})").status == 201);
  auto watch = s.client.open("/v1/events?after=0");
  s.server.process().signal(SIGTERM);
  CHECK(s.server.process().wait().code == 0);
  CHECK(processes_with(s.work.path()).empty());
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(s.server.state()))
    left.push_back(entry.path().filename());
  CHECK(left == std::vector<std::string>{"lock"});
}

TEST_CASE("a second server on the same state directory is refused, and the first goes on") {
  server_process first;
  const auto second = run({server_program(), "--state-directory", first.state()});
  CHECK(second.code == 125);
  CHECK(second.err.find("uses the state directory") != std::string::npos);
  CHECK(first.client().get("/healthz").status == 200);
}

TEST_CASE("the one line at boot says how dispatch is wrapped") {
  const auto line = [](const std::vector<std::string>& options, const run_options& how,
                       const std::string& expected) {
    server_process server(options, how);
    server.process().signal(SIGTERM);
    const auto done = server.process().wait();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = done.err.find("agent sandbox", at)) != std::string::npos; ++at)
      ++count;
    CHECK(count == 1);
    CHECK_MESSAGE(done.err.find("\n" + expected + "\n") != std::string::npos, done.err);
  };
  line({}, {}, "agent sandbox ON: bubblewrap — namespace isolation, no kernel boundary");
  line({"--sandbox", "off"}, {}, "agent sandbox DISABLED by --sandbox off");
  run_options by_variable;
  by_variable.extra_env = {"CC_SERVER_SANDBOX=off"};
  line({}, by_variable, "agent sandbox DISABLED by --sandbox off");
  line({"--sandbox", "on"}, by_variable,
       "agent sandbox ON: bubblewrap — namespace isolation, no kernel boundary");
  const temporary_directory dir;
  const auto none = dir.write("none.yaml", "plugins:\n  - path: none.so\n");
  server_process bare({"--plugins", none});
  bare.process().signal(SIGTERM);
  CHECK(bare.process().wait().err.find("\nno OS-native agent sandbox on this host: ") != std::string::npos);
  for (const std::string word : {"", "yes", "ON", "0"}) {
    run_options bad;
    bad.extra_env = {"CC_SERVER_SANDBOX=" + word};
    CHECK(run({server_program(), "--state-directory", dir / "s"}, bad).code == 125);
    CHECK(run({server_program(), "--state-directory", dir / "s", "--sandbox", word}).code == 125);
  }
}
