// What the thread sanitizer starts with in ccbox-broker.
//
// While an enclosure works, nobody reads the broker's standard error, and its exit status is the launcher's.
// So its first report ends it: the enclosure then ends, too, and the test that uses it fails.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();

const char* __tsan_default_options() {
  return "halt_on_error=1";
}
