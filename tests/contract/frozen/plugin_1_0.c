/* A plugin of version 1.0, frozen with its own copy of the header: every later host must load it and get full plans
 * from it. Neither file is ever edited again once 1.0 is released; a change that they do not survive breaks the ABI.
 *
 * It applies mounts only, as text, and says exactly that: its plans are compared, never started.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccbox_plugin_1_0.h"

#define CLAIMS \
  (CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_NET_PROXY_ONLY | CCBOX_RULE_PID_ISOLATION | CCBOX_RULE_RESOURCE_LIMITS)

struct ccbox_plugin {
  char mark[32];
};

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

static ccbox_status create(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out, ccbox_text *error) {
  ccbox_plugin *plugin;
  size_t i;
  if (!CCBOX_HAS(host, ccbox_host, get_extension) || !CCBOX_HAS(config, ccbox_config, option_count)) {
    write_text(error, "the host is older than 1.0");
    return CCBOX_INVALID;
  }
  plugin = calloc(1, sizeof *plugin);
  if (!plugin) {
    write_text(error, "out of memory");
    return CCBOX_FAILED;
  }
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option *option =
        (const ccbox_option *)(const void *)((const char *)config->options + i * config->option_stride);
    if (!equals(option->key, "mark") || option->value.len >= sizeof plugin->mark ||
        memchr(option->value.ptr, 0, option->value.len)) {
      char line[128];
      size_t c;
      (void)snprintf(line, sizeof line, "unknown option or value: %.*s",
                     (int)(option->key.len < 64 ? option->key.len : 64), option->key.ptr);
      for (c = 0; line[c]; ++c)
        if ((unsigned char)line[c] < 0x20 || line[c] == 0x7f) line[c] = '?';
      write_text(error, line);
      free(plugin);
      return CCBOX_INVALID;
    }
    memcpy(plugin->mark, option->value.ptr, option->value.len);
    plugin->mark[option->value.len] = '\0';
  }
  host->log(host->ctx, CCBOX_DEBUG, str("frozen 1.0 created"));
  *out = plugin;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin *plugin) { free(plugin); }

static ccbox_status probe(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                          ccbox_text *error) {
  (void)plugin;
  if (!CCBOX_HAS(request, ccbox_probe_request, depth) || !CCBOX_HAS(result, ccbox_probe_result, cause)) {
    write_text(error, "the host is older than 1.0");
    return CCBOX_INVALID;
  }
  result->available = 1;
  result->requires_install = 0;
  result->enforced = CLAIMS;
  write_text(&result->note, "frozen 1.0");
  return CCBOX_OK;
}

static int has_nul(ccbox_str text) { return text.len > 0 && memchr(text.ptr, 0, text.len) != NULL; }

static ccbox_status plan(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                         ccbox_text *error) {
  char number[32];
  uint64_t enforced = CLAIMS;
  size_t i;
  if (!CCBOX_HAS(request, ccbox_plan_request, init_path) || !CCBOX_HAS(sink, ccbox_plan_sink, flags)) {
    write_text(error, "the host is older than 1.0");
    return CCBOX_INVALID;
  }
  sink->argument(sink->ctx, str("/usr/bin/frozen"));
  sink->argument(sink->ctx, str(plugin->mark));
  for (i = 0; i < request->rule_count; ++i) {
    const ccbox_rule *rule =
        (const ccbox_rule *)(const void *)((const char *)request->rules + i * request->rule_stride);
    if (rule->bit & request->waived) continue;
    if (rule->kind != CCBOX_KIND_MOUNT) {
      enforced &= ~rule->bit;
      continue;
    }
    if (has_nul(rule->path) || has_nul(rule->guest_path)) {
      write_text(error, "a mount has a NUL byte in its path");
      return CCBOX_INVALID;
    }
    (void)snprintf(number, sizeof number, "%d", (int)sink->open_path(sink->ctx, rule->path));
    sink->argument(sink->ctx, str(rule->flags & CCBOX_RULE_READ_ONLY ? "--ro" : "--rw"));
    sink->argument(sink->ctx, str(number));
    sink->argument(sink->ctx, rule->guest_path);
    sink->layer(sink->ctx, i, str("mount: bind"));
  }
  if (has_nul(request->workdir)) {
    write_text(error, "the working directory has a NUL byte");
    return CCBOX_INVALID;
  }
  if (request->network == CCBOX_NETWORK_HOST) enforced &= ~CCBOX_RULE_NET_PROXY_ONLY;
  sink->argument(sink->ctx, str("--chdir"));
  sink->argument(sink->ctx, request->workdir);
  sink->environment(sink->ctx, str("FROZEN"), str("1.0"));
  (void)snprintf(number, sizeof number, "%d", (int)sink->file(sink->ctx, str("notes"), str("sealed")));
  sink->argument(sink->ctx, str(number));
  (void)snprintf(number, sizeof number, "/proc/self/fd/%d", (int)request->init_fd);
  sink->argument(sink->ctx, str(number));
  sink->argument(sink->ctx, str("--channel"));
  (void)snprintf(number, sizeof number, "%d", (int)request->channel_fd);
  sink->argument(sink->ctx, str(number));
  sink->enforces(sink->ctx, enforced);
  return CCBOX_OK;
}

static const ccbox_backend backend = {sizeof(ccbox_backend), 0, {"native", 6}, probe, plan};

static const void *get_extension(ccbox_plugin *plugin, ccbox_str name) {
  (void)plugin;
  return equals(name, CCBOX_BACKEND_EXTENSION) ? &backend : NULL;
}

static const ccbox_plugin_descriptor descriptor = {
    sizeof(ccbox_plugin_descriptor), CCBOX_ABI_MINOR, {"frozen", 6}, {"1.0", 3}, create, destroy, get_extension};

const ccbox_plugin_descriptor *ccbox_plugin_v1(void) { return &descriptor; }
