/* A plugin from the future: its tables have members that this version does not know, its minor version is 9, and it
 * can enforce a rule bit of version 1.9. On an older host, which it recognises by the sizes, it behaves as the older
 * version says. The option `manners: none` makes it use what is new all the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccbox/plugin.h"

#define RULE_OF_1_9 ((uint64_t)1 << 20)
#define PLAN_FLAG_OF_1_9 (1u << 20)

struct ccbox_plugin {
  int without_manners;
};

typedef struct descriptor_1_9 {
  ccbox_plugin_descriptor v1_0;
  void (*suspend)(ccbox_plugin *plugin);
  uint64_t more[8];
} descriptor_1_9;

typedef struct backend_1_9 {
  ccbox_backend v1_0;
  void (*resume)(ccbox_plugin *plugin);
  uint64_t more[8];
} backend_1_9;

typedef struct plan_request_1_9 {
  ccbox_plan_request v1_0;
  uint64_t vlan;
} plan_request_1_9;

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
  size_t i;
  (void)host;
  *out = calloc(1, sizeof **out);
  if (!*out) abort();
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option *option =
        (const ccbox_option *)(const void *)((const char *)config->options + i * config->option_stride);
    if (!equals(option->key, "manners") || !equals(option->value, "none")) {
      char line[128];
      size_t c;
      (void)snprintf(line, sizeof line, "unknown option %.*s", (int)(option->key.len < 64 ? option->key.len : 64),
                     option->key.ptr);
      for (c = 0; line[c]; ++c)
        if ((unsigned char)line[c] < 0x20 || line[c] == 0x7f) line[c] = '?';
      write_text(error, line);
      free(*out);
      *out = NULL;
      return CCBOX_INVALID;
    }
    (*out)->without_manners = 1;
  }
  return CCBOX_OK;
}

static void destroy(ccbox_plugin *plugin) { free(plugin); }

static ccbox_status probe(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                          ccbox_text *error) {
  if (!CCBOX_HAS(request, ccbox_probe_request, depth) || !CCBOX_HAS(result, ccbox_probe_result, cause)) {
    write_text(error, "the host is older than 1.0");
    return CCBOX_INVALID;
  }
  result->available = 1;
  result->requires_install = 0;
  result->enforced = CCBOX_RULE_PID_ISOLATION;
  if (plugin->without_manners) result->enforced |= RULE_OF_1_9;
  write_text(&result->note, "from 1.9");
  return CCBOX_OK;
}

static ccbox_status plan(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                         ccbox_text *error) {
  char number[32];
  uint64_t enforced = CCBOX_RULE_PID_ISOLATION;
  int host_is_1_9 = request->size >= sizeof(plan_request_1_9);
  if (!CCBOX_HAS(request, ccbox_plan_request, init_path) || !CCBOX_HAS(sink, ccbox_plan_sink, flags)) {
    write_text(error, "the host is older than 1.0");
    return CCBOX_INVALID;
  }
  (void)host_is_1_9; /* the vlan would be applied here; nothing of 1.0 depends on it */
  sink->argument(sink->ctx, str("/usr/bin/future"));
  (void)snprintf(number, sizeof number, "/proc/self/fd/%d", (int)request->init_fd);
  sink->argument(sink->ctx, str(number));
  sink->argument(sink->ctx, str("--channel"));
  (void)snprintf(number, sizeof number, "%d", (int)request->channel_fd);
  sink->argument(sink->ctx, str(number));
  if (plugin->without_manners) {
    enforced |= RULE_OF_1_9;
    sink->flags(sink->ctx, PLAN_FLAG_OF_1_9);
  }
  sink->enforces(sink->ctx, enforced);
  return CCBOX_OK;
}

static void newer_function(ccbox_plugin *plugin) {
  (void)plugin;
  abort(); /* no host of today can know it */
}

static const backend_1_9 backend = {
    {sizeof(backend_1_9), 0, {"native", 6}, probe, plan}, newer_function, {~0ull, ~0ull, 0, 0, 0, 0, 0, 0}};

static const void *get_extension(ccbox_plugin *plugin, ccbox_str name) {
  (void)plugin;
  return equals(name, CCBOX_BACKEND_EXTENSION) ? &backend : NULL;
}

static const descriptor_1_9 descriptor = {
    {sizeof(descriptor_1_9), 9, {"future", 6}, {"9.0", 3}, create, destroy, get_extension},
    newer_function,
    {~0ull, ~0ull, 0, 0, 0, 0, 0, 0}};

const ccbox_plugin_descriptor *ccbox_plugin_v1(void) { return &descriptor.v1_0; }
