/* A monitor that keeps the contract until its option `defect` names one way to break it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ccbox/plugin.h"

struct ccbox_plugin {
  char defect[64];
};

struct ccbox_watch {
  const char *defect;
  ccbox_str borrowed;
  char room[256]; /* a leak that shows */
};

static int equals(ccbox_str a, const char *b) { return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0; }

static void write_text(ccbox_text *out, const char *text) {
  out->length = strlen(text) < out->capacity ? strlen(text) : out->capacity;
  if (out->length > 0) memcpy(out->ptr, text, out->length);
}

static void burn_ms(long ms) {
  struct timespec now, start;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static ccbox_status open_watch(ccbox_plugin *plugin, const ccbox_monitor_request *request, ccbox_watch **out,
                               ccbox_text *error) {
  ccbox_watch *made = calloc(1, sizeof *made);
  size_t i;
  (void)error;
  if (!made) return CCBOX_FAILED;
  made->defect = plugin->defect;
  if (strcmp(plugin->defect, "keeps_the_session_id") == 0) made->borrowed = request->session_id;
  for (i = 0; i < request->rule_count; ++i) {
    const ccbox_rule *rule =
        (const ccbox_rule *)(const void *)((const char *)request->rules + i * request->rule_stride);
    if (strcmp(plugin->defect, "steps_rules_by_sizeof") == 0) rule = request->rules + i;
    if (rule->path.len > 0 && rule->path.ptr[0] != '/') abort();
  }
  *out = made;
  return CCBOX_OK;
}

static void tell(const ccbox_monitor_sink *sink, ccbox_violation told) {
  told.size = (uint32_t)sizeof told;
  sink->violation(sink->ctx, &told);
}

static void denial(ccbox_watch *watch, const ccbox_violation *denied, const ccbox_monitor_sink *sink) {
  ccbox_violation told = *denied;
  if (watch->borrowed.len > 0 && watch->borrowed.ptr[0] == 'x') return;
  if (told.action.len == 0) return;
  if (strcmp(watch->defect, "counts_twice") == 0) told.count *= 2;
  if (strcmp(watch->defect, "counts_nothing") == 0) told.count = 0;
  if (strcmp(watch->defect, "names_no_action") == 0) told.action.len = 0;
  tell(sink, told);
}

static void output(ccbox_watch *watch, uint64_t exec_id, ccbox_str bytes, const ccbox_monitor_sink *sink) {
  (void)exec_id;
  (void)sink;
  if (strcmp(watch->defect, "expects_text") == 0 && bytes.len > 0 && memchr(bytes.ptr, '\0', bytes.len)) abort();
  if (strcmp(watch->defect, "reads_output_slowly") == 0) burn_ms(60);
}

static uint32_t flush(ccbox_watch *watch, uint32_t last, const ccbox_monitor_sink *sink) {
  (void)watch;
  (void)last;
  (void)sink;
  return 0;
}

static void close_watch(ccbox_watch *watch) {
  if (strcmp(watch->defect, "close_frees_nothing") != 0) free(watch);
}

static const ccbox_monitor monitor = {sizeof monitor, 0, open_watch, denial, output, flush, close_watch};
static const ccbox_monitor without_flush = {sizeof monitor, 0, open_watch, denial, output, NULL, close_watch};

static ccbox_status create(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out,
                           ccbox_text *error) {
  ccbox_plugin *made = calloc(1, sizeof *made);
  size_t i;
  (void)host;
  if (!made) return CCBOX_FAILED;
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option *option =
        (const ccbox_option *)(const void *)((const char *)config->options + i * config->option_stride);
    if (equals(option->key, "defect") && option->value.len < sizeof made->defect) {
      memcpy(made->defect, option->value.ptr, option->value.len);
      continue;
    }
    char line[96] = "unknown option ";
    const size_t used = strlen(line);
    for (size_t n = 0; n < option->key.len && n < 64; ++n)
      line[used + n] = option->key.ptr[n] > ' ' && option->key.ptr[n] < 0x7f ? option->key.ptr[n] : '?';
    write_text(error, line);
    free(made);
    return CCBOX_INVALID;
  }
  *out = made;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin *plugin) { free(plugin); }

static const void *get_extension(ccbox_plugin *plugin, ccbox_str name) {
  if (!equals(name, CCBOX_MONITOR_EXTENSION)) return NULL;
  return strcmp(plugin->defect, "monitor_has_a_hole") == 0 ? &without_flush : &monitor;
}

const ccbox_plugin_descriptor *ccbox_plugin_v1(void) {
  static const ccbox_plugin_descriptor descriptor = {
      sizeof descriptor, CCBOX_ABI_MINOR, {"broken-monitor", 14}, {"1.0", 3}, create, destroy, get_extension};
  return &descriptor;
}
