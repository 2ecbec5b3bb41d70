/* A plugin that keeps the contract until its option `defect` names one way to break it: each check of the suite is
 * shown to fail. Without the option it passes them all. What happens before create is chosen by a macro instead.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ccbox/plugin.h"

struct ccbox_plugin {
  char defect[64];
  ccbox_str borrowed; /* what keeps_a_borrowed_string keeps */
  unsigned probes, plans;
};

#define PLUGIN_IS(name) (strcmp(plugin->defect, name) == 0)

static ccbox_str str(const char *text) {
  ccbox_str out;
  out.ptr = text;
  out.len = strlen(text);
  return out;
}

static int equals(ccbox_str a, const char *b) { return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0; }

static void write_text(ccbox_text *out, const char *text) {
  out->length = strlen(text) < out->capacity ? strlen(text) : out->capacity;
  if (out->length > 0) memcpy(out->ptr, text, out->length);
}

static void wait_ms(long ms) {
  struct timespec wait = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&wait, NULL);
}

static void burn_ms(long ms) {
  struct timespec now, start;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static void *sleep_for_ever(void *unused) {
  for (;;) wait_ms(1000000);
  return unused;
}

static void start_thread(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_for_ever, NULL);
}

static void leak_descriptor(void) {
  if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) abort();
}

static void leak_heap(void) {
  char *volatile lost = malloc(200);
  lost[0] = 'x';
}

static void leak_child(void) {
  if (fork() == 0) {
    for (;;) pause();
  }
}

/* ---- create and destroy ----------------------------------------------------------------------------------------- */

static const char *const early_defects[] = {"error_beyond_capacity", "error_claims_too_much", "error_of_two_lines",
                                            "no_error_text",         "accepts_unknown_options", "error_names_nothing",
                                            "leaks_when_refused",    "instance_when_refused", "steps_options_by_sizeof"};

/* The defect must be known before the options are judged. */
static void find_defect(const ccbox_config *config, char out[64]) {
  size_t i;
  out[0] = '\0';
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option *option =
        (const ccbox_option *)(const void *)((const char *)config->options + i * config->option_stride);
    if (equals(option->key, "defect") && option->value.len < 64) {
      memcpy(out, option->value.ptr, option->value.len);
      out[option->value.len] = '\0';
    }
  }
}

/* The defects of a refused create are asked for by the environment: the suite passes options of its own there. */
static int early(const char *name) {
  const char *chosen = getenv("CCBOX_TEST_DEFECT");
  size_t i;
  for (i = 0; i < sizeof early_defects / sizeof *early_defects; ++i)
    if (strcmp(early_defects[i], name) == 0) return chosen && strcmp(chosen, name) == 0;
  abort();
}

static ccbox_status refuse(ccbox_str key, ccbox_plugin **out, ccbox_text *error) {
  char line[128];
  (void)snprintf(line, sizeof line, "unknown option '%.*s'", (int)(key.len < 64 ? key.len : 64), key.ptr);
  for (char *c = line; *c; ++c)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  if (early("error_names_nothing")) (void)snprintf(line, sizeof line, "bad configuration");
  if (early("error_of_two_lines")) line[3] = '\n';
  write_text(error, early("no_error_text") ? "" : line);
  if (early("error_claims_too_much")) error->length = error->capacity + 1;
  if (early("error_beyond_capacity") && error->capacity > 0) memset(error->ptr, 'x', error->capacity + 1);
  if (early("leaks_when_refused")) leak_heap();
  if (early("instance_when_refused")) *out = calloc(1, sizeof(ccbox_plugin));
  return CCBOX_INVALID;
}

static ccbox_status create(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out, ccbox_text *error) {
  size_t i, stride = early("steps_options_by_sizeof") ? sizeof(ccbox_option) : config->option_stride;
  ccbox_plugin *plugin;
  (void)host;
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option *option = (const ccbox_option *)(const void *)((const char *)config->options + i * stride);
    if (!equals(option->key, "defect") && !early("accepts_unknown_options")) return refuse(option->key, out, error);
  }
  plugin = calloc(1, sizeof *plugin);
  if (!plugin) abort();
  find_defect(config, plugin->defect);
  if (config->option_count > 0) plugin->borrowed = config->options[0].value;
  if (PLUGIN_IS("create_is_slow")) wait_ms(1200);
  if (PLUGIN_IS("create_crashes")) raise(SIGSEGV);
  if (PLUGIN_IS("leaks_a_descriptor")) leak_descriptor();
  if (PLUGIN_IS("leaks_a_thread")) start_thread();
  if (PLUGIN_IS("leaks_heap")) leak_heap();
  if (PLUGIN_IS("leaks_a_mapping"))
    if (mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) abort();
  if (PLUGIN_IS("leaks_a_child")) leak_child();
  if (PLUGIN_IS("create_fails")) {
    write_text(error, "no luck");
    free(plugin);
    return CCBOX_FAILED;
  }
  *out = plugin;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin *plugin) {
  if (PLUGIN_IS("destroy_is_slow")) wait_ms(1200);
  free(plugin);
}

/* ---- probe ------------------------------------------------------------------------------------------------------ */

/* The rule bits that both probe and plan claim. */
static uint64_t claims(const ccbox_plugin *plugin) {
  uint64_t bits = CCBOX_RULE_RESOURCE_LIMITS;
  if (PLUGIN_IS("skips_unknown_rules")) bits |= CCBOX_RULE_FS_READ_DENY;
  if (PLUGIN_IS("ignores_the_network")) bits |= CCBOX_RULE_NET_PROXY_ONLY;
  if (PLUGIN_IS("drops_late_mounts") || PLUGIN_IS("drops_all_mounts")) bits |= CCBOX_RULE_FS_BINDS_ONLY;
  return bits;
}

static ccbox_status probe(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                          ccbox_text *error) {
  int blind = PLUGIN_IS("probe_ignores_sizes");
  ++plugin->probes;
  if (!blind && (!CCBOX_HAS(request, ccbox_probe_request, depth) || !CCBOX_HAS(result, ccbox_probe_result, cause))) {
    write_text(error, "too old");
    return CCBOX_INVALID;
  }
  if (PLUGIN_IS("probe_fails")) {
    write_text(error, "no luck");
    return CCBOX_FAILED;
  }
  if (PLUGIN_IS("probe_clears_the_result")) {
    ccbox_probe_result kept = *result;
    memset(result, 0, kept.size);
    memcpy(result, &kept, sizeof kept);
  }
  result->available = 1;
  result->requires_install = 0;
  result->enforced = claims(plugin);
  if (!PLUGIN_IS("probe_has_no_note")) write_text(&result->note, "breaks promises when asked to");
  if (PLUGIN_IS("probe_overflows") && result->note.capacity > 0) memset(result->note.ptr, 'x', 41);
  if (PLUGIN_IS("probe_claims_unknown_bits")) result->enforced |= (uint64_t)1 << 50;
  if (PLUGIN_IS("none_with_claims")) result->enforced |= CCBOX_RULE_PID_ISOLATION;
  if (PLUGIN_IS("probe_text_is_no_utf8")) write_text(&result->note, "\xff");
  if (PLUGIN_IS("probe_claims_a_kernel")) result->enforced |= CCBOX_RULE_KERNEL_BOUNDARY;
  if (PLUGIN_IS("probe_claims_more")) result->enforced |= CCBOX_RULE_EXEC_DENY;
  if (PLUGIN_IS("probe_available_is_two")) result->available = 2;
  if (PLUGIN_IS("unavailable_without_hint") || PLUGIN_IS("unavailable_with_claims") || PLUGIN_IS("unavailable")) {
    result->available = 0;
    if (!PLUGIN_IS("unavailable_with_claims")) result->enforced = 0;
    if (!PLUGIN_IS("unavailable_without_hint")) write_text(&result->hint, "install luck");
    write_text(&result->cause, "no-luck");
  }
  if (PLUGIN_IS("probe_alternates")) result->enforced = plugin->probes % 2 ? CCBOX_RULE_RESOURCE_LIMITS : 0;
  if (PLUGIN_IS("quick_probe_is_slow") && request->depth == CCBOX_PROBE_QUICK) wait_ms(70);
  if (PLUGIN_IS("probe_leaks_a_descriptor")) leak_descriptor();
  if (PLUGIN_IS("probe_leaks_a_child")) leak_child();
  if (PLUGIN_IS("quick_probe_starts_a_process") && request->depth == CCBOX_PROBE_QUICK) leak_child();
  if (blind) write_text(&result->cause, "none");
  return CCBOX_OK;
}

/* ---- plan ------------------------------------------------------------------------------------------------------- */

static ccbox_status plan_failure(ccbox_plugin *plugin, ccbox_status status, ccbox_text *error) {
  write_text(error, PLUGIN_IS("plan_error_is_empty") ? "" : "no plan for this");
  if (PLUGIN_IS("plan_error_beyond_capacity") && error->capacity > 0) memset(error->ptr, 'x', error->capacity + 3);
  return status;
}

static void side_effects(ccbox_plugin *plugin) {
  if (PLUGIN_IS("plan_starts_a_process")) leak_child();
  if (PLUGIN_IS("plan_executes")) execl("/bin/true", "true", (char *)NULL);
  if (PLUGIN_IS("plan_creates_a_file")) {
    int fd = open("/tmp/ccbox-contract-broken", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    unlink("/tmp/ccbox-contract-broken"); /* without the filter it is made: leave nothing behind */
  }
  if (PLUGIN_IS("plan_opens_for_writing")) {
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0) close(fd);
  }
  if (PLUGIN_IS("plan_removes")) unlink("/tmp/ccbox-contract-broken-missing");
  if (PLUGIN_IS("plan_makes_a_directory")) (void)syscall(SYS_mkdirat, AT_FDCWD, "/proc/missing", 0700);
  if (PLUGIN_IS("plan_leaks_a_descriptor")) leak_descriptor();
  if (PLUGIN_IS("plan_leaks_heap")) leak_heap();
  if (PLUGIN_IS("plan_is_slow")) burn_ms(70);
  if (PLUGIN_IS("plan_hangs")) sleep_for_ever(NULL);
  if (PLUGIN_IS("plan_exits")) exit(3);
  if (PLUGIN_IS("plan_aborts")) {
    (void)!write(2, "assertion failed: luck\n", 23);
    abort();
  }
}

/* How this plugin passes a path on: as an argument, or as a defect has it. */
static void pass_path(ccbox_plugin *plugin, const ccbox_plan_sink *sink, ccbox_str path) {
  char changed[4096];
  size_t i;
  if (path.len >= sizeof changed) return;
  memcpy(changed, path.ptr, path.len);
  changed[path.len] = '\0';
  if (PLUGIN_IS("passes_a_nul_on")) {
    sink->file(sink->ctx, str("arguments"), path);
  } else if (PLUGIN_IS("cuts_paths_at_a_nul")) {
    sink->file(sink->ctx, str("arguments"), str(changed));
  } else if (PLUGIN_IS("replaces_newlines") && !memchr(path.ptr, 0, path.len)) {
    for (i = 0; i < path.len; ++i)
      if (changed[i] == '\n') changed[i] = ' ';
    ccbox_str out = {changed, path.len};
    sink->file(sink->ctx, str("arguments"), out);
  }
}

static ccbox_status plan(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                         ccbox_text *error) {
  int blind = PLUGIN_IS("plan_ignores_the_request_size") || PLUGIN_IS("plans_a_truncated_request");
  int blind_sink = PLUGIN_IS("plan_ignores_the_sink_size");
  char init[32], channel[16];
  size_t i, stride, count;
  ++plugin->plans;
  if ((!blind && !CCBOX_HAS(request, ccbox_plan_request, init_path)) ||
      (!blind_sink && !CCBOX_HAS(sink, ccbox_plan_sink, flags)))
    return plan_failure(plugin, CCBOX_INVALID, error);
  if (PLUGIN_IS("plans_a_truncated_request") && !CCBOX_HAS(request, ccbox_plan_request, init_path)) {
    sink->argument(sink->ctx, str("/bin/true"));
    sink->argument(sink->ctx, str("--channel"));
    sink->argument(sink->ctx, str("3"));
    sink->enforces(sink->ctx, claims(plugin));
    return CCBOX_OK;
  }
  if (PLUGIN_IS("refuses_newer_hosts") && request->size != sizeof *request)
    return plan_failure(plugin, CCBOX_INVALID, error);
  if (PLUGIN_IS("plan_refuses")) return plan_failure(plugin, CCBOX_FAILED, error);
  if (PLUGIN_IS("returns_an_unknown_status")) return plan_failure(plugin, 77, error);
  if (PLUGIN_IS("many_rules_fail") && request->rule_count > 5000) return plan_failure(plugin, CCBOX_FAILED, error);
  if (PLUGIN_IS("waived_rules_are_refused") && request->waived) return plan_failure(plugin, CCBOX_INVALID, error);
  side_effects(plugin);

  (void)snprintf(init, sizeof init, "/proc/self/fd/%d", (int)request->init_fd);
  (void)snprintf(channel, sizeof channel, "%d", PLUGIN_IS("channel_is_fixed") ? 3 : (int)request->channel_fd);
  if (PLUGIN_IS("argv_is_empty")) return CCBOX_OK;
  sink->argument(sink->ctx, PLUGIN_IS("argv_is_relative") ? str("env") : str("/usr/bin/env"));
  if (PLUGIN_IS("keeps_a_borrowed_string")) sink->argument(sink->ctx, plugin->borrowed);
  if (PLUGIN_IS("plan_counts")) {
    char count_text[16];
    (void)snprintf(count_text, sizeof count_text, "N=%u", plugin->plans);
    sink->argument(sink->ctx, str(count_text));
  }
  if (PLUGIN_IS("plan_knows_its_thread") && syscall(SYS_gettid) != getpid()) sink->argument(sink->ctx, str("T=1"));
  if (PLUGIN_IS("argument_has_a_nul")) {
    ccbox_str nul = {"A=\0", 3};
    sink->argument(sink->ctx, nul);
  }
  if (PLUGIN_IS("environment_is_malformed")) sink->environment(sink->ctx, str("A=B"), str("C"));
  if (PLUGIN_IS("open_path_is_relative")) sink->open_path(sink->ctx, str("etc"));
  if (PLUGIN_IS("layer_of_no_rule")) sink->layer(sink->ctx, request->rule_count, str("mount"));
  if (PLUGIN_IS("crashes_without_rules") && !request->rules) raise(SIGSEGV); /* as reading rules[0] would */

  stride = PLUGIN_IS("steps_rules_by_sizeof") ? sizeof(ccbox_rule) : request->rule_stride;
  count = request->rule_count;
  for (i = 0; i < count; ++i) {
    const ccbox_rule *rule = (const ccbox_rule *)(const void *)((const char *)request->rules + i * stride);
    if (rule->kind != CCBOX_KIND_MOUNT) continue;
    if (PLUGIN_IS("drops_late_mounts") && i < 1000) sink->open_path(sink->ctx, rule->path);
    if (PLUGIN_IS("steps_rules_by_sizeof") && rule->path.len < 4096) sink->layer(sink->ctx, i, str("none"));
    pass_path(plugin, sink, rule->path);
  }
  sink->argument(sink->ctx, str(init));
  if (!PLUGIN_IS("argv_ends_elsewhere")) sink->argument(sink->ctx, str("--channel"));
  sink->argument(sink->ctx, str(channel));

  uint64_t bits = claims(plugin);
  if (PLUGIN_IS("plan_claims_less")) bits = 0;
  if (PLUGIN_IS("plan_claims_more")) bits |= CCBOX_RULE_EXEC_DENY;
  if (PLUGIN_IS("plan_claims_unknown_bits")) bits |= (uint64_t)1 << 50;
  if (PLUGIN_IS("echoes_required")) bits |= request->required & 0x1ff;
  if (PLUGIN_IS("waiving_costs_all") && request->waived) bits = 0;
  if (PLUGIN_IS("unconfined_with_a_boundary")) bits |= CCBOX_RULE_PID_ISOLATION;
  sink->enforces(sink->ctx, bits);
  if (PLUGIN_IS("enforces_twice")) sink->enforces(sink->ctx, bits);
  if (PLUGIN_IS("flags_are_unknown")) sink->flags(sink->ctx, 0x1000);
  if (PLUGIN_IS("unconfined_and_native") || PLUGIN_IS("unconfined_with_a_boundary"))
    sink->flags(sink->ctx, CCBOX_PLAN_UNCONFINED);
  return CCBOX_OK;
}

/* ---- the tables ------------------------------------------------------------------------------------------------- */

static const ccbox_backend backend = {sizeof(ccbox_backend), 0, {"native", 6}, probe, plan};
static const ccbox_backend copy_of_backend = {sizeof(ccbox_backend), 0, {"native", 6}, probe, plan};
static const ccbox_backend odd_kind = {sizeof(ccbox_backend), 0, {"docker", 6}, probe, plan};
static const ccbox_backend kind_none = {sizeof(ccbox_backend), 0, {"none", 4}, probe, plan};
static const ccbox_backend without_plan = {sizeof(ccbox_backend), 0, {"native", 6}, probe, NULL};
static const ccbox_backend one_member_short = {offsetof(ccbox_backend, plan), 0, {"native", 6}, probe, plan};

static const void *get_extension(ccbox_plugin *plugin, ccbox_str name) {
  static unsigned calls;
  if (PLUGIN_IS("no_extension")) return NULL;
  if (PLUGIN_IS("answers_every_name")) return &backend;
  if (PLUGIN_IS("compares_a_prefix")) return name.len >= 15 && memcmp(name.ptr, CCBOX_BACKEND_EXTENSION, 15) == 0 ? &backend : NULL;
  if (PLUGIN_IS("compares_terminated_names")) return strcmp(name.ptr, CCBOX_BACKEND_EXTENSION) == 0 ? &backend : NULL;
  if (!equals(name, CCBOX_BACKEND_EXTENSION)) return NULL;
  if (PLUGIN_IS("extension_moves")) return ++calls % 2 ? &backend : &copy_of_backend;
  if (PLUGIN_IS("kind_is_unknown")) return &odd_kind;
  if (PLUGIN_IS("none_with_claims") || PLUGIN_IS("unconfined_with_a_boundary")) return &kind_none;
  if (PLUGIN_IS("plan_is_missing")) return &without_plan;
  if (PLUGIN_IS("table_is_short")) return &one_member_short;
  return &backend;
}

#ifdef BROKEN_THREAD_AT_LOAD
__attribute__((constructor)) static void at_load(void) { start_thread(); }
#endif
#ifdef BROKEN_CRASH_AT_LOAD
__attribute__((constructor)) static void at_load(void) { abort(); }
#endif
#ifdef BROKEN_SECOND_SYMBOL
CCBOX_EXPORT int one_symbol_too_many(void);
int one_symbol_too_many(void) { return 1; }
#endif

#ifdef BROKEN_NAME
#define NAME {"Broken!", 7}
#else
#define NAME {"broken", 6}
#endif
#ifdef BROKEN_SHORT_DESCRIPTOR
#define SIZE offsetof(ccbox_plugin_descriptor, get_extension)
#else
#define SIZE sizeof(ccbox_plugin_descriptor)
#endif

static const ccbox_plugin_descriptor descriptor = {SIZE,   CCBOX_ABI_MINOR, NAME, {"1.0", 3},
                                                   create, destroy,         get_extension};

#ifdef BROKEN_NO_ENTRY
static const ccbox_plugin_descriptor *ccbox_plugin_v2(void) { return &descriptor; }
CCBOX_EXPORT const void *another_entry(void);
const void *another_entry(void) { return ccbox_plugin_v2(); }
#else
const ccbox_plugin_descriptor *ccbox_plugin_v1(void) {
#ifdef BROKEN_NULL_DESCRIPTOR
  (void)descriptor;
  return NULL;
#elif defined(BROKEN_FRESH_DESCRIPTOR)
  ccbox_plugin_descriptor *fresh = malloc(sizeof *fresh);
  *fresh = descriptor;
  return fresh;
#else
  return &descriptor;
#endif
}
#endif
