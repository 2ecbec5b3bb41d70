#include "sandbox_spec.hpp"

#include <doctest/doctest.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <limits>

#include "support/result_printing.hpp"

using namespace ccbox;

namespace {

// A spec with `more` members after the required ones.
std::string spec_text(const std::string& more) {
  return R"({"sessionId":"s1","workspaceId":"w","bindMounts":[])" + (more.empty() ? "" : "," + more) + "}";
}

void refused(const std::string& text, const std::string& key_path, const std::string& cause) {
  CAPTURE(text.substr(0, 200));
  const auto spec = parse_sandbox_spec(text);
  REQUIRE(!spec);
  CHECK(spec.error().code == error_code::invalid_argument);
  CHECK_MESSAGE(spec.error().what.rfind(key_path + ": ", 0) == 0, spec.error().what);
  CHECK_MESSAGE(spec.error().what.find(cause) != std::string::npos, spec.error().what);
}

sandbox_spec valid_spec() {
  sandbox_spec spec;
  spec.session_id = "s1";
  spec.workspace_id = "w";
  spec.bind_mounts = {{"/work", "", false}};
  return spec;
}

void invalid(const sandbox_spec& spec, const std::string& key_path, const std::string& cause) {
  const auto valid = validate(spec);
  REQUIRE(!valid);
  CHECK(valid.error().code == error_code::invalid_argument);
  CHECK_MESSAGE(valid.error().what.rfind(key_path + ": ", 0) == 0, valid.error().what);
  CHECK_MESSAGE(valid.error().what.find(cause) != std::string::npos, valid.error().what);
}

}  // namespace

TEST_CASE("a spec with the required keys alone has the specification's defaults") {
  const auto spec = parse_sandbox_spec(spec_text(""));
  REQUIRE(spec);
  CHECK(spec->session_id == "s1");
  CHECK(spec->workspace_id == "w");
  CHECK(spec->network_enabled);
  CHECK(spec->mode == sandbox_mode::chat);
  CHECK(spec->capabilities == agent_capabilities{});
  CHECK(spec->capabilities.network);
  CHECK(!spec->capabilities.call_github_api);
  CHECK(!spec->capabilities.push);
  CHECK(!spec->capabilities.call_ticketing);
  CHECK(!spec->agent_id);
  CHECK(!spec->guest_workdir);
  CHECK(!spec->backend);
  CHECK(!spec->limits.any());
  CHECK(spec->without.empty());
}

TEST_CASE("every key of a spec is read and comes back equal") {
  const auto spec = parse_sandbox_spec(R"({
    "sessionId": "Space_1.a-b", "workspaceId": "w", "agentId": "a",
    "bindMounts": [{"hostPath": "/h", "guestPath": "/g", "readOnly": true}, {"hostPath": "/same"}],
    "networkEnabled": false, "egressAllowlist": ["*.example.com"], "guestWorkdir": "/g", "mode": "orchestrate",
    "capabilities": {"canAccessNetwork": false, "canCallGitHubApi": true, "canPush": true, "canCallTicketing": true},
    "protectedPaths": ["/p"], "runnerStateDirs": ["/r"], "execGrantRoots": ["/e"],
    "limits": {"memoryBytes": 1073741824, "cpus": 1.5, "processes": 64, "fileSizeBytes": 1, "wallTimeMs": 1000},
    "backend": "bubblewrap", "without": ["fs_name_deny", "exec_deny"]})");
  REQUIRE(spec);
  CHECK(spec->bind_mounts == std::vector<sandbox_bind_mount>{{"/h", "/g", true}, {"/same", "/same", false}});
  CHECK(spec->mode == sandbox_mode::orchestrate);
  CHECK(spec->capabilities == agent_capabilities{false, true, true, true});
  CHECK(spec->limits == resource_limits{1073741824, 1.5, 64, 1, 1000});
  CHECK(spec->runner_state_dirs == std::vector<std::string>{"/r"});
  CHECK(spec->exec_grant_roots == std::vector<std::string>{"/e"});
  CHECK(waived_bits(*spec) == (CCBOX_RULE_FS_NAME_DENY | CCBOX_RULE_EXEC_DENY));
  const auto again = parse_sandbox_spec(boost::json::serialize(to_json(*spec)));
  REQUIRE(again);
  CHECK(*again == *spec);
}

TEST_CASE("every mode has its name and no other name is a mode") {
  for (const auto* name : {"chat", "review", "plan", "orchestrate"}) {
    const auto mode = sandbox_mode_from_name(name);
    REQUIRE(mode);
    CHECK(to_string(*mode) == name);
    const auto spec = parse_sandbox_spec(spec_text(R"("mode":")" + std::string(name) + "\""));
    REQUIRE(spec);
    CHECK(spec->mode == *mode);
  }
  for (const auto* name : {"", "Chat", "chat ", "write"}) {
    CHECK(!sandbox_mode_from_name(name));
    refused(spec_text(R"("mode":")" + std::string(name) + "\""), "mode", "is no mode");
  }
}

TEST_CASE("null stands for absent where a value may be absent and is refused elsewhere") {
  const auto spec = parse_sandbox_spec(spec_text(
      R"("agentId":null,"guestWorkdir":null,"backend":null,"limits":{"memoryBytes":null,"cpus":null})"));
  REQUIRE(spec);
  CHECK(*spec == *parse_sandbox_spec(spec_text("")));
  for (const auto* key : {"networkEnabled", "egressAllowlist", "mode", "capabilities", "protectedPaths",
                          "runnerStateDirs", "execGrantRoots", "limits", "without"})
    refused(spec_text("\"" + std::string(key) + "\":null"), key, "null");
}

TEST_CASE("a missing required key is named") {
  refused(R"({"workspaceId":"w","bindMounts":[]})", "sessionId", "missing");
  refused(R"({"sessionId":"s","bindMounts":[]})", "workspaceId", "missing");
  refused(R"({"sessionId":"s","workspaceId":"w"})", "bindMounts", "missing");
  refused(R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":"/a"},{"guestPath":"/b"}]})",
          "bindMounts[1].hostPath", "missing");
}

TEST_CASE("an unknown key is named at its place and the known ones are in the hint") {
  refused(spec_text(R"("networkenabled":false)"), "networkenabled", "unknown key");
  refused(spec_text(R"("limits":{"memory":1})"), "limits.memory", "unknown key");
  refused(spec_text(R"("capabilities":{"canAccessNetWork":true})"), "capabilities.canAccessNetWork",
          "unknown key");
  refused(R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":"/a","readonly":true}]})",
          "bindMounts[0].readonly", "unknown key");
  const auto spec = parse_sandbox_spec(spec_text(R"("sessionID":"x")"));
  REQUIRE(!spec);
  CHECK(spec.error().hint.find("networkEnabled") != std::string::npos);
}

TEST_CASE("a duplicate key is refused at any depth, whatever its value and however it is spelled") {
  refused(spec_text(R"("networkEnabled":false,"networkEnabled":true)"), "networkEnabled", "duplicate");
  refused(spec_text(R"("networkEnabled":true,"network\u0045nabled":true)"), "networkEnabled", "duplicate");
  refused(spec_text(R"("limits":{"cpus":1,"processes":2,"cpus":1})"), "limits.cpus", "duplicate");
  refused(
      R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":"/a"},{"hostPath":"/a","hostPath":"/b"}]})",
      "bindMounts[1].hostPath", "duplicate");
}

TEST_CASE("a wrong type is refused with the key and what stands there") {
  const auto everything_but = [](const std::string& right) {
    std::vector<std::string> wrong;
    for (const std::string value : {R"("x")", "1", "true", "[]", "{}", "1.5"})
      if (right.find(value) == std::string::npos) wrong.push_back(value);
    return wrong;
  };
  for (const auto& value : everything_but(R"("x")")) {
    for (const std::string key : {"agentId", "guestWorkdir", "mode", "backend"})
      refused(spec_text("\"" + key + "\":" + value), key, "must be a string, not ");
    for (const std::string key :
         {"egressAllowlist", "protectedPaths", "runnerStateDirs", "execGrantRoots", "without"})
      refused(spec_text("\"" + key + "\":[\"/ok\"," + value + "]"), key + "[1]", "must be a string, not ");
    refused("{\"sessionId\":" + value + "}", "sessionId", "must be a string, not ");
    refused(R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":)" + value + "}]}",
            "bindMounts[0].hostPath", "must be a string, not ");
  }
  for (const auto& value : everything_but("[]")) {
    for (const std::string key :
         {"egressAllowlist", "protectedPaths", "runnerStateDirs", "execGrantRoots", "without"})
      refused(spec_text("\"" + key + "\":" + value), key, "must be an array");
    refused(R"({"sessionId":"s","workspaceId":"w","bindMounts":)" + value + "}", "bindMounts",
            "must be an array");
  }
  for (const auto& value : everything_but("true")) {
    refused(spec_text("\"networkEnabled\":" + value), "networkEnabled", "must be true or false, not ");
    refused(spec_text("\"capabilities\":{\"canPush\":" + value + "}"), "capabilities.canPush",
            "true or false");
  }
  for (const auto& value : everything_but("{}")) {
    refused(spec_text("\"limits\":" + value), "limits", "must be an object, not ");
    refused(spec_text("\"capabilities\":" + value), "capabilities", "must be an object, not ");
    refused(R"({"sessionId":"s","workspaceId":"w","bindMounts":[)" + value + "]}", "bindMounts[0]",
            "must be an object, not ");
  }
  for (const auto* text : {"[]", "1", "\"x\"", "null", "true"}) {
    const auto spec = parse_sandbox_spec(text);
    REQUIRE(!spec);
    CHECK(spec.error().what.find("must be an object, not ") != std::string::npos);
  }
}

TEST_CASE("a session id is what is safe in file names and log lines") {
  for (const std::string& id :
       {std::string("a"), std::string("A.b_c-9"), std::string("_x"), std::string(64, 'x')}) {
    auto spec = valid_spec();
    spec.session_id = id;
    CHECK(validate(spec));
  }
  for (const std::string& id : {std::string(), std::string("."), std::string(".."), std::string("-rf"),
                                std::string("a/b"), std::string("a b"), std::string("a\n"),
                                std::string("\xc3\xbc"), std::string("a\0b", 3), std::string(65, 'x')}) {
    auto spec = valid_spec();
    spec.session_id = id;
    invalid(spec, "sessionId", id.size() > 64 ? "longer" : "is no session id");
  }
  refused(R"({"sessionId":"../x","workspaceId":"w","bindMounts":[]})", "sessionId",
          "'../x' is no session id");
}

TEST_CASE("relative and empty paths and NUL bytes are refused wherever a path stands") {
  struct bad_path {
    const char* json;
    const char* cause;
  };
  for (const auto& bad : {bad_path{R"("work")", "absolute"}, bad_path{R"("./work")", "absolute"},
                          bad_path{R"("~/work")", "absolute"}, bad_path{R"("")", "empty"},
                          bad_path{R"("/a\u0000/b")", "NUL"}}) {
    const std::string path = bad.json;
    refused(spec_text("\"guestWorkdir\":" + path), "guestWorkdir", bad.cause);
    for (const std::string key : {"protectedPaths", "runnerStateDirs", "execGrantRoots"})
      refused(spec_text("\"" + key + "\":[\"/ok\"," + path + "]"), key + "[1]", bad.cause);
    refused(R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":)" + path + "}]}",
            "bindMounts[0].hostPath", bad.cause);
    refused(
        R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":"/a","guestPath":)" + path + "}]}",
        "bindMounts[0].guestPath", bad.cause);
  }
}

TEST_CASE("NUL bytes and too long text are refused in every other string") {
  const std::string long_text = "\"" + std::string(5000, 'x') + "\"";
  for (const std::string key : {"agentId", "backend"}) {
    refused(spec_text("\"" + key + R"(":"a\u0000")"), key, "NUL");
    refused(spec_text("\"" + key + "\":" + long_text), key, "longer");
  }
  refused(spec_text(R"("egressAllowlist":["a.example","b\u0000"])"), "egressAllowlist[1]", "NUL");
  refused(spec_text(R"("egressAllowlist":[""])"), "egressAllowlist[0]", "empty");
  refused(spec_text("\"egressAllowlist\":[" + long_text + "]"), "egressAllowlist[0]", "longer");
  refused(R"({"sessionId":"s","workspaceId":"\u0000","bindMounts":[]})", "workspaceId", "NUL");
  refused(spec_text(R"("backend":"")"), "backend", "empty");
  refused(spec_text("\"protectedPaths\":[\"/" + std::string(4095, 'x') + "\"]"), "protectedPaths[0]",
          "longer");
  CHECK(parse_sandbox_spec(spec_text("\"protectedPaths\":[\"/" + std::string(4094, 'x') + "\"]")));
}

TEST_CASE("a limit that is negative, fractional, zero, huge or no number is refused") {
  for (const std::string key : {"memoryBytes", "processes", "fileSizeBytes", "wallTimeMs"}) {
    for (const std::string value :
         {"-1", "-0", "0", "0.5", "1.0", "1e3", "18446744073709551615", "18446744073709551616", "1e400",
          "-1e400", "9223372036854775808", "1e-400"}) {
      CAPTURE(value);
      const auto spec = parse_sandbox_spec(spec_text("\"limits\":{\"" + key + "\":" + value + "}"));
      REQUIRE(!spec);
      CHECK(spec.error().code == error_code::invalid_argument);
      CHECK_MESSAGE(spec.error().what.rfind("limits." + key + ": ", 0) == 0, spec.error().what);
    }
    refused(spec_text("\"limits\":{\"" + key + "\":\"1\"}"), "limits." + key,
            "must be a number, not a string");
    const std::string least = key == "memoryBytes" ? "4194304" : "1";
    CHECK(parse_sandbox_spec(spec_text("\"limits\":{\"" + key + "\":" + least + "}")));
  }
  refused(spec_text(R"("limits":{"memoryBytes":4194303})"), "limits.memoryBytes", "must be from 4194304 to");
  for (const std::string value : {"0", "-1", "0.001", "9000", "1e400", "1e300"})
    CHECK(!parse_sandbox_spec(spec_text("\"limits\":{\"cpus\":" + value + "}")));
  for (const std::string value : {"1", "0.5", "1e1", "8192", "0.01"})
    CHECK(parse_sandbox_spec(spec_text("\"limits\":{\"cpus\":" + value + "}")));
  auto spec = valid_spec();
  spec.limits.cpus = std::numeric_limits<double>::quiet_NaN();
  invalid(spec, "limits.cpus", "must be from");
}

TEST_CASE("a fraction of a processor survives the way through JSON and back") {
  for (const auto* value :
       {"0.1", "0.3", "1.1", "2.675", "0.01", "1234.567", "1117.4550778415241", "0.30000000000000004"}) {
    const auto spec = parse_sandbox_spec(spec_text("\"limits\":{\"cpus\":" + std::string(value) + "}"));
    REQUIRE(spec);
    CHECK(*spec->limits.cpus == doctest::Approx(std::stod(value)).epsilon(0.001));
    const auto again = parse_sandbox_spec(boost::json::serialize(to_json(*spec)));
    REQUIRE(again);
    CHECK(*again == *spec);
  }
}

TEST_CASE("only rules that may be given up can be named in without") {
  for (const auto& entry : all_rule_bits()) {
    auto spec = valid_spec();
    spec.without = {std::string(entry.name)};
    if (entry.waivable) {
      CHECK(validate(spec));
      CHECK(waived_bits(spec) == entry.bit);
    } else {
      invalid(spec, "without[0]", "may not be given up");
    }
  }
  refused(spec_text(R"("without":["fs_name_deny","fs_nam_deny"])"), "without[1]", "'fs_nam_deny' is no rule");
  refused(spec_text(R"("without":["FS_NAME_DENY"])"), "without[0]", "is no rule");
  CHECK(waived_bits(valid_spec()) == 0);
}

TEST_CASE("text over one MiB and nesting over 32 levels are too large") {
  const auto huge = parse_sandbox_spec(spec_text("\"agentId\":\"" + std::string(1 << 20, 'x') + "\""));
  REQUIRE(!huge);
  CHECK(huge.error().code == error_code::too_large);
  const auto deep = parse_sandbox_spec(spec_text("\"x\":" + std::string(100000, '[')));
  REQUIRE(!deep);
  CHECK(deep.error().code == error_code::too_large);
  CHECK(deep.error().what.rfind("x[0][0]", 0) == 0);
  CHECK(deep.error().what.size() < 400);
}

TEST_CASE("ten thousand mounts are a spec like any other") {
  std::string text = R"({"sessionId":"s","workspaceId":"w","bindMounts":[)";
  for (int i = 0; i < 10000; ++i)
    (text += i ? "," : "") += R"({"hostPath":"/m)" + std::to_string(i) + R"(","readOnly":true})";
  const auto spec = parse_sandbox_spec(text + "]}");
  REQUIRE(spec);
  CHECK(spec->bind_mounts.size() == 10000);
  CHECK(spec->bind_mounts[9999].host_path == "/m9999");
}

TEST_CASE("paths from C++ may hold any bytes but NUL and JSON shows them with replacement characters") {
  auto spec = valid_spec();
  spec.bind_mounts = {{"/caf\xe9\n*[x]\\\"", "", false}};
  spec.protected_paths = {"/\xff\xfe"};
  CHECK(validate(spec));
  const auto text = boost::json::serialize(to_json(spec));
  const auto shown = parse_sandbox_spec(text);
  REQUIRE(shown);
  CHECK(shown->bind_mounts[0].host_path == "/caf\xef\xbf\xbd\n*[x]\\\"");
  CHECK(shown->protected_paths[0] == "/\xef\xbf\xbd\xef\xbf\xbd");
  spec.protected_paths = {std::string("/a\0b", 4)};
  invalid(spec, "protectedPaths[0]", "NUL");
}

TEST_CASE("names with newlines, globs and quotes come through JSON as they are") {
  const auto spec = parse_sandbox_spec(
      R"({"sessionId":"s","workspaceId":"w","bindMounts":[{"hostPath":"/[WIP] a*b?\n\\\"\u00fc"}]})");
  REQUIRE(spec);
  CHECK(spec->bind_mounts[0].host_path == "/[WIP] a*b?\n\\\"\xc3\xbc");
}
