/* A monitor that keeps to the contract of "ccbox.monitor/1" and is easy to recognise:
 *
 *   denial   hands on the first of every two, with the action `seen`; the others are counted
 *   output   answers a violation `output` with the bytes as its target
 *   flush    tells of those counted as one violation `counted`, and wants to be called again if it did
 *
 *   option `misbehave: HOW`   refuse (open fails), silent (open answers nothing), hostile (targets with
 * control bytes, bidirectional ones and malformed UTF-8), nameless (no action), flood (5000 a call) */
#include <stdlib.h>
#include <string.h>

#include "ccbox/plugin.h"

#ifndef FAKE_NAME
#define FAKE_NAME "monitor"
#endif
#ifndef FAKE_TABLE_SIZE
#define FAKE_TABLE_SIZE sizeof(ccbox_monitor)
#endif
#ifndef FAKE_FLUSH
#define FAKE_FLUSH flush
#endif

#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }

struct ccbox_plugin {
  char misbehave[16];
};

struct ccbox_watch {
  const struct ccbox_plugin* plugin;
  unsigned denials;
  uint64_t counted;
};

static const ccbox_str nothing = {"", 0};

static int is(ccbox_str text, const char* word) {
  return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static void write_text(ccbox_text* to, const char* text) {
  const size_t length = strlen(text);
  to->length = length < to->capacity ? length : to->capacity;
  memcpy(to->ptr, text, to->length);
}

static void tell(const ccbox_monitor_sink* sink, uint64_t exec_id, uint64_t count, ccbox_str action,
                 ccbox_str target, ccbox_str raw) {
  ccbox_violation told;
  memset(&told, 0, sizeof told);
  told.size = sizeof told;
  told.exec_id = exec_id;
  told.count = count;
  told.action = action;
  told.target = target;
  told.suggested_capability = nothing;
  told.raw = raw;
  sink->violation(sink->ctx, &told);
}

static ccbox_status open_watch(ccbox_plugin* self, const ccbox_monitor_request* request, ccbox_watch** out,
                               ccbox_text* error) {
  (void)request;
  if (strcmp(self->misbehave, "refuse") == 0) {
    write_text(error, "this session is not for me\n");
    return CCBOX_FAILED;
  }
  if (strcmp(self->misbehave, "silent") == 0) return CCBOX_OK;
  *out = calloc(1, sizeof **out);
  if (!*out) return CCBOX_FAILED;
  (*out)->plugin = self;
  return CCBOX_OK;
}

static void denial(ccbox_watch* watch, const ccbox_violation* denied, const ccbox_monitor_sink* sink) {
  const ccbox_str seen = TEXT("seen"), hostile = TEXT("a\nb\x1b[31m\xe2\x80\xae\xff"),
                  raw = TEXT("\xe2\x80\xae\xff\n");
  unsigned i;
  if (watch->denials++ % 2 == 1) {
    watch->counted += denied->count;
    return;
  }
  if (strcmp(watch->plugin->misbehave, "hostile") == 0) {
    tell(sink, 0, 0, seen, hostile, raw);
  } else if (strcmp(watch->plugin->misbehave, "nameless") == 0) {
    tell(sink, 0, 1, nothing, denied->target, nothing);
  } else if (strcmp(watch->plugin->misbehave, "flood") == 0) {
    for (i = 0; i < 5000; ++i)
      tell(sink, 0, 1, seen, denied->target, nothing);
  } else {
    tell(sink, 0, denied->count, seen, denied->target, denied->raw);
  }
}

static void output(ccbox_watch* watch, uint64_t exec_id, ccbox_str bytes, const ccbox_monitor_sink* sink) {
  const ccbox_str action = TEXT("output"), end = TEXT("(end)");
  (void)watch;
  tell(sink, exec_id, 1, action, bytes.len ? bytes : end, nothing);
}

static uint32_t flush(ccbox_watch* watch, uint32_t last, const ccbox_monitor_sink* sink) {
  const ccbox_str action = TEXT("counted"), now = TEXT("now"), end = TEXT("last");
  const uint64_t counted = watch->counted;
  if (counted == 0) return 0;
  watch->counted = 0;
  tell(sink, 0, counted, action, last ? end : now, nothing);
  return 50;
}

static void close_watch(ccbox_watch* watch) {
  free(watch);
}

static const ccbox_monitor monitor = {FAKE_TABLE_SIZE, 0,          open_watch, denial,
                                      output,          FAKE_FLUSH, close_watch};

static ccbox_status create(const ccbox_host* host, const ccbox_config* config, ccbox_plugin** out,
                           ccbox_text* error) {
  ccbox_plugin* made = calloc(1, sizeof *made);
  size_t i;
  (void)host;
  (void)flush;
  if (!made) return CCBOX_FAILED;
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option* option =
        (const ccbox_option*)(const void*)((const char*)config->options + i * config->option_stride);
    if (!is(option->key, "misbehave") || option->value.len >= sizeof made->misbehave) {
      free(made);
      write_text(error, "unknown option");
      return CCBOX_INVALID;
    }
    memcpy(made->misbehave, option->value.ptr, option->value.len);
  }
  *out = made;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin* self) {
  free(self);
}

static const void* get_extension(ccbox_plugin* self, ccbox_str name) {
  (void)self;
  return is(name, CCBOX_MONITOR_EXTENSION) ? &monitor : NULL;
}

CCBOX_EXPORT const ccbox_plugin_descriptor* ccbox_plugin_v1(void);
CCBOX_EXPORT const ccbox_plugin_descriptor* ccbox_plugin_v1(void) {
  static const ccbox_plugin_descriptor descriptor = {
      sizeof descriptor, CCBOX_ABI_MINOR, TEXT(FAKE_NAME), TEXT("1.0"), create, destroy, get_extension};
  return &descriptor;
}
