/* An example backend in plain C11: commands run at a lower priority, and that is all.
 *
 * It has no boundary and says so: its kind is `none`, it claims `resource_limits` (its process inherits what the kernel of ccbox sets) and
 * nothing else, so a launch that needs more than that is refused. Option: niceness, 0 to 19, default 10.
 *
 * The pieces that every backend needs are here in order: strings and errors, options, probe, plan, the tables.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ccbox/plugin.h"

#define LAUNCHER "/usr/bin/nice"

struct ccbox_plugin {
  char niceness[4];
};

/* ---- strings and errors: a ccbox_str has no terminator, a ccbox_text has a capacity -------------------------- */

static ccbox_str str(const char *text) {
  ccbox_str out;
  out.ptr = text;
  out.len = strlen(text);
  return out;
}

static int equals(ccbox_str a, const char *b) { return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0; }

/* One line without control characters, cut at the capacity. */
static void write_text(ccbox_text *out, const char *format, ...) {
  char line[256];
  size_t i, length;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  length = strlen(line);
  if (length > out->capacity) length = out->capacity;
  for (i = 0; i < length; ++i) out->ptr[i] = (unsigned char)line[i] < 0x20 || line[i] == 0x7f ? '?' : line[i];
  out->length = length;
}

/* ---- create and destroy ----------------------------------------------------------------------------------------- */

static int parse_niceness(ccbox_str value, char out[4]) {
  size_t i;
  if (value.len < 1 || value.len > 2) return 0;
  for (i = 0; i < value.len; ++i)
    if (value.ptr[i] < '0' || value.ptr[i] > '9') return 0;
  memcpy(out, value.ptr, value.len);
  out[value.len] = '\0';
  return atoi(out) <= 19;
}

static ccbox_status create(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out, ccbox_text *error) {
  ccbox_plugin *plugin;
  size_t i;
  (void)host;
  if (!CCBOX_HAS(config, ccbox_config, option_count) ||
      (config->option_count > 0 && config->option_stride < sizeof(ccbox_option))) {
    write_text(error, "this host is older than version 1.0 of the plugin ABI");
    return CCBOX_INVALID;
  }
  plugin = calloc(1, sizeof *plugin);
  if (!plugin) {
    write_text(error, "out of memory");
    return CCBOX_FAILED;
  }
  strcpy(plugin->niceness, "10");
  for (i = 0; i < config->option_count; ++i) {
    /* Step by the stride: a newer host has larger options. */
    const ccbox_option *option =
        (const ccbox_option *)(const void *)((const char *)config->options + i * config->option_stride);
    if (!equals(option->key, "niceness")) {
      write_text(error, "unknown option '%.*s'; known: niceness", (int)(option->key.len < 64 ? option->key.len : 64),
                 option->key.ptr);
      free(plugin);
      return CCBOX_INVALID;
    }
    if (!parse_niceness(option->value, plugin->niceness)) {
      write_text(error, "option niceness: not a number from 0 to 19");
      free(plugin);
      return CCBOX_INVALID;
    }
  }
  *out = plugin;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin *plugin) { free(plugin); }

/* ---- the backend ------------------------------------------------------------------------------------------------ */

static ccbox_status probe(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                          ccbox_text *error) {
  (void)plugin;
  (void)request; /* looking for the program is as much as a full probe could do */
  if (!CCBOX_HAS(result, ccbox_probe_result, cause)) {
    write_text(error, "this host is older than version 1.0 of the plugin ABI");
    return CCBOX_INVALID;
  }
  write_text(&result->note, "lower priority, no boundary (%s)", LAUNCHER);
  result->available = access(LAUNCHER, X_OK) == 0;
  result->requires_install = !result->available;
  result->enforced = result->available ? CCBOX_RULE_RESOURCE_LIMITS : 0;
  if (!result->available) {
    write_text(&result->hint, "install coreutils");
    write_text(&result->cause, "missing-tool");
  }
  return CCBOX_OK;
}

static ccbox_status plan(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                         ccbox_text *error) {
  char init[32], channel[16];
  size_t i;
  if (!CCBOX_HAS(request, ccbox_plan_request, init_path) || !CCBOX_HAS(sink, ccbox_plan_sink, flags) ||
      (request->rule_count > 0 && request->rule_stride < sizeof(ccbox_rule))) {
    write_text(error, "this host is older than version 1.0 of the plugin ABI");
    return CCBOX_INVALID;
  }
  (void)snprintf(init, sizeof init, "/proc/self/fd/%d", (int)request->init_fd);
  (void)snprintf(channel, sizeof channel, "%d", (int)request->channel_fd);
  sink->argument(sink->ctx, str(LAUNCHER));
  sink->argument(sink->ctx, str("-n"));
  sink->argument(sink->ctx, str(plugin->niceness));
  sink->argument(sink->ctx, str(init));
  sink->argument(sink->ctx, str("--channel"));
  sink->argument(sink->ctx, str(channel));
  for (i = 0; i < request->rule_count; ++i) {
    const ccbox_rule *rule =
        (const ccbox_rule *)(const void *)((const char *)request->rules + i * request->rule_stride);
    if (rule->bit == CCBOX_RULE_RESOURCE_LIMITS && rule->kind > CCBOX_KIND_EXEC_GRANT) {
      /* Never claim a bit whose rules you do not understand. */
      write_text(error, "rule %zu is newer than this plugin", i);
      return CCBOX_UNENFORCEABLE;
    }
  }
  sink->enforces(sink->ctx, CCBOX_RULE_RESOURCE_LIMITS);
  sink->flags(sink->ctx, CCBOX_PLAN_UNCONFINED);
  return CCBOX_OK;
}

/* ---- the tables ------------------------------------------------------------------------------------------------- */

static const ccbox_backend backend = {sizeof(ccbox_backend), 0, {"none", 4}, probe, plan};

static const void *get_extension(ccbox_plugin *plugin, ccbox_str name) {
  (void)plugin;
  return equals(name, CCBOX_BACKEND_EXTENSION) ? &backend : NULL;
}

static const ccbox_plugin_descriptor descriptor = {
    sizeof(ccbox_plugin_descriptor), CCBOX_ABI_MINOR, {"example-nice", 12}, {"1.0", 3}, create, destroy, get_extension};

CCBOX_EXPORT const ccbox_plugin_descriptor *ccbox_plugin_v1(void) { return &descriptor; }
