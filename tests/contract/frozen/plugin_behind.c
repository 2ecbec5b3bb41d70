/* A plugin that is one member behind this version in every struct: the last member of each is not there for it. With
 * C++ virtual interfaces such a plugin ran, reported success and dropped its isolation; here it works, or is refused.
 * BEHIND_DESCRIPTOR and BEHIND_TABLE leave out members that no host can do without.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccbox/plugin.h"

static ccbox_str str(const char *text) {
  ccbox_str out;
  out.ptr = text;
  out.len = strlen(text);
  return out;
}

static ccbox_status create(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out, ccbox_text *error) {
  static char instance;
  (void)host;
  (void)config;
  (void)error;
  *out = (ccbox_plugin *)&instance;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin *plugin) { (void)plugin; }

/* Does not know `cause`. */
static ccbox_status probe(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                          ccbox_text *error) {
  (void)plugin;
  (void)request;
  (void)error;
  if (result->note.capacity >= 6) {
    memcpy(result->note.ptr, "behind", 6);
    result->note.length = 6;
  }
  result->available = 1;
  result->enforced = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_PID_ISOLATION;
  return CCBOX_OK;
}

/* Does not know `reason` of a rule, `init_path` of a request and `flags` of a sink. */
static ccbox_status plan(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                         ccbox_text *error) {
  char number[32];
  uint64_t enforced = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_PID_ISOLATION;
  size_t i;
  (void)plugin;
  (void)error;
  sink->argument(sink->ctx, str("/usr/bin/behind"));
  for (i = 0; i < request->rule_count; ++i) {
    const ccbox_rule *rule =
        (const ccbox_rule *)(const void *)((const char *)request->rules + i * request->rule_stride);
    if (rule->kind == CCBOX_KIND_MOUNT) {
      sink->open_path(sink->ctx, rule->path);
      sink->argument(sink->ctx, rule->guest_path);
    } else {
      enforced &= ~rule->bit;
    }
  }
  (void)snprintf(number, sizeof number, "/proc/self/fd/%d", (int)request->init_fd);
  sink->argument(sink->ctx, str(number));
  sink->argument(sink->ctx, str("--channel"));
  (void)snprintf(number, sizeof number, "%d", (int)request->channel_fd);
  sink->argument(sink->ctx, str(number));
  sink->enforces(sink->ctx, enforced);
  return CCBOX_OK;
}

#ifdef BEHIND_TABLE
#define TABLE_SIZE offsetof(ccbox_backend, plan)
#else
#define TABLE_SIZE sizeof(ccbox_backend)
#endif
#ifdef BEHIND_DESCRIPTOR
#define DESCRIPTOR_SIZE offsetof(ccbox_plugin_descriptor, get_extension)
#else
#define DESCRIPTOR_SIZE sizeof(ccbox_plugin_descriptor)
#endif

static const ccbox_backend backend = {TABLE_SIZE, 0, {"native", 6}, probe, plan};

static const void *get_extension(ccbox_plugin *plugin, ccbox_str name) {
  (void)plugin;
  return name.len == 15 && memcmp(name.ptr, CCBOX_BACKEND_EXTENSION, 15) == 0 ? &backend : NULL;
}

static const ccbox_plugin_descriptor descriptor = {DESCRIPTOR_SIZE, 0,       {"behind", 6}, {"0.9", 3},
                                                   create,          destroy, get_extension};

const ccbox_plugin_descriptor *ccbox_plugin_v1(void) { return &descriptor; }
