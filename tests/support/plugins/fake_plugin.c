/* A backend that starts nothing. Built many times over: each target of CMakeLists.txt sets some of the macros
 * below and gets a plugin that is wrong in one way. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ccbox/plugin.h"

#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION "1.0"
#endif
#ifndef FAKE_KIND
#define FAKE_KIND "native"
#endif
#ifndef FAKE_DESCRIPTOR_SIZE
#define FAKE_DESCRIPTOR_SIZE sizeof(ccbox_plugin_descriptor)
#endif
#ifndef FAKE_EXTENSION
#define FAKE_EXTENSION CCBOX_BACKEND_EXTENSION
#endif
#ifndef FAKE_DESTROY
#define FAKE_DESTROY destroy
#endif
#ifndef FAKE_RETURNED
#define FAKE_RETURNED &descriptor
#endif
#ifndef FAKE_BACKEND_SIZE
#define FAKE_BACKEND_SIZE sizeof(ccbox_backend)
#endif
#ifndef FAKE_ENTRY
#define FAKE_ENTRY ccbox_plugin_v1
#endif

#ifdef FAKE_IMPORT
/* Something that nobody defines. */
extern void FAKE_IMPORT(void);
void (*const fake_import)(void) = &FAKE_IMPORT;
#endif

#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }

struct ccbox_plugin {
  const ccbox_host* host;
  char available;
};

static int is(ccbox_str text, const char* word) {
  return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static void write_text(ccbox_text* to, const char* text) {
  const size_t length = strlen(text);
  to->length = length < to->capacity ? length : to->capacity;
  memcpy(to->ptr, text, to->length);
}

static ccbox_status fake_probe(ccbox_plugin* self, const ccbox_probe_request* request,
                               ccbox_probe_result* result, ccbox_text* error) {
  static const char full[] = "probed to the full", quick[] = "probed",
                    overlapping[] = "probed by two at once";
  static atomic_int inside;
  const struct timespec while_others_may_come = {0, 2000000};
  const char* note = quick;
#ifdef FAKE_PROBE_FAILS
  write_text(error, "the probe broke");
  return CCBOX_FAILED;
#endif
  (void)error;
  result->available = self->available == 'y';
  result->enforced = CCBOX_RULE_PID_ISOLATION;
  if (request->depth == CCBOX_PROBE_FULL) {
    note = atomic_fetch_add(&inside, 1) == 0 ? full : overlapping;
    nanosleep(&while_others_may_come, NULL);
    atomic_fetch_sub(&inside, 1);
  }
  write_text(&result->note, note);
  if (!result->available) {
    write_text(&result->hint, "install " FAKE_NAME);
    write_text(&result->cause, "missing-tool");
  }
  return CCBOX_OK;
}

static ccbox_status fake_plan(ccbox_plugin* self, const ccbox_plan_request* request,
                              const ccbox_plan_sink* sink, ccbox_text* error) {
  const ccbox_str argv0 = TEXT("/bin/" FAKE_NAME), version = TEXT(FAKE_VERSION);
  const ccbox_str type = TEXT("violation"), json = TEXT("{\"action\":\"plan\"}");
  ccbox_status emitted;
  (void)error;
  sink->argument(sink->ctx, argv0);
  sink->argument(sink->ctx, version);
  sink->enforces(sink->ctx, CCBOX_RULE_PID_ISOLATION);
  emitted = self->host->emit(self->host->ctx, request->session_id, type, json);
  if (emitted != CCBOX_OK && emitted != CCBOX_UNAVAILABLE) return emitted;
  return CCBOX_OK;
}

static const ccbox_backend backend = {FAKE_BACKEND_SIZE, 0, TEXT(FAKE_KIND), fake_probe, fake_plan};

static ccbox_status create(const ccbox_host* host, const ccbox_config* config, ccbox_plugin** out,
                           ccbox_text* error) {
  const ccbox_str text = TEXT("created");
  size_t i;
  ccbox_plugin* made;
#ifdef FAKE_CREATE_STATUS
  return FAKE_CREATE_STATUS; /* and nothing else */
#endif
  made = calloc(1, sizeof *made);
  if (!made) return CCBOX_FAILED;
  made->host = host;
  made->available = 'y';
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option* option =
        (const ccbox_option*)(const void*)((const char*)config->options + i * config->option_stride);
    if (is(option->key, "available")) {
      made->available = is(option->value, "no") ? 'n' : 'y';
    } else {
      free(made);
      write_text(error, "unknown option\n");
      return CCBOX_INVALID;
    }
  }
  host->log(host->ctx, CCBOX_DEBUG, text);
  *out = made;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin* self) {
  const ccbox_str text = TEXT("destroyed");
  self->host->log(self->host->ctx, CCBOX_ERROR, text);
  free(self);
}

static const void* get_extension(ccbox_plugin* self, ccbox_str name) {
  (void)self;
  return is(name, FAKE_EXTENSION) ? &backend : NULL;
}

CCBOX_EXPORT const ccbox_plugin_descriptor* FAKE_ENTRY(void);
CCBOX_EXPORT const ccbox_plugin_descriptor* FAKE_ENTRY(void) {
  static const ccbox_plugin_descriptor descriptor = {FAKE_DESCRIPTOR_SIZE, CCBOX_ABI_MINOR, TEXT(FAKE_NAME),
                                                     TEXT(FAKE_VERSION),   create,          FAKE_DESTROY,
                                                     get_extension};
  (void)descriptor;
  (void)destroy;
  return FAKE_RETURNED;
}
