/* An egress plugin without proxies. It keeps to the contract of "ccbox.egress/1" and records every call:
 *
 *   option `record: FILE`     each call appends lines to FILE (see the functions)
 *   option `misbehave: HOW`   open answers what no plugin may answer: no-socks, bad-endpoint, bad-name,
 * bad-value, bad-flag, many-endpoints, many-variables, overrun, refuse, silent-refuse rule
 * `deny-at-open.test`  open emits a denial of that host, `deny-at-close.test` close does, and rule
 * `deny-many.test`     a thread emits 3000 between the two, each of another host rule with a space         is
 * no rule
 *
 * decide allows what an allow rule names word by word. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccbox/plugin.h"

#ifndef FAKE_NAME
#define FAKE_NAME "egress"
#endif
#ifndef FAKE_TABLE_SIZE
#define FAKE_TABLE_SIZE sizeof(ccbox_egress)
#endif
#ifndef FAKE_DECIDE
#define FAKE_DECIDE decide
#endif

#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }

enum { most_sessions = 64 };

struct session {
  char id[80];
  char* allowed; /* patterns, each between newlines */
  int deny_at_close, has_thread;
  pthread_t thread;
  struct ccbox_plugin* plugin;
};

struct ccbox_plugin {
  const ccbox_host* host;
  char record[512];
  char misbehave[32];
  pthread_mutex_t mutex;
  struct session* sessions[most_sessions];
};

static int is(ccbox_str text, const char* word) {
  return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static ccbox_str str(const char* text) {
  const ccbox_str made = {text, strlen(text)};
  return made;
}

static void write_text(ccbox_text* to, const char* text) {
  const size_t length = strlen(text);
  to->length = length < to->capacity ? length : to->capacity;
  memcpy(to->ptr, text, to->length);
}

static void note(struct ccbox_plugin* self, const char* what, ccbox_str text) {
  FILE* file = self->record[0] ? fopen(self->record, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s %.*s\n", what, (int)text.len, text.ptr ? text.ptr : "");
  fclose(file);
}

static void emit(struct ccbox_plugin* self, const char* session, const char* type, const char* reason,
                 const char* host) {
  char json[512];
  char answer[64];
  const int length = snprintf(json, sizeof json,
                              "{\"protocol\":\"connect\",\"host\":\"%s\",\"port\":443,\"reason\":"
                              "\"%s\",\"rule\":\"\",\"origin\":\"\",\"count\":1}",
                              host, reason);
  const ccbox_str body = {json, (size_t)length};
  const ccbox_status status = self->host->emit(self->host->ctx, str(session), str(type), body);
  if (status == CCBOX_OK) return;
  snprintf(answer, sizeof answer, "%d", (int)status);
  note(self, "emit refused", str(answer));
}

static void emit_denial(struct ccbox_plugin* self, const char* session, const char* host) {
  emit(self, session, "denial", "blocked-by-allowlist", host);
}

static void* emit_many(void* argument) {
  struct session* s = argument;
  int i;
  char host[64];
  for (i = 0; i < 3000; ++i) {
    snprintf(host, sizeof host, "n%d.deny-many.test", i);
    emit_denial(s->plugin, s->id, host);
  }
  return NULL;
}

static ccbox_status check_rule(ccbox_plugin* self, const ccbox_egress_rule* rule, ccbox_text* error) {
  (void)self;
  if (rule->pattern.len == 0 || memchr(rule->pattern.ptr, ' ', rule->pattern.len)) {
    write_text(error, "has a space; leave it out");
    return CCBOX_INVALID;
  }
  return CCBOX_OK;
}

static struct session** slot_of(struct ccbox_plugin* self, ccbox_str id) {
  int i;
  for (i = 0; i < most_sessions; ++i)
    if (self->sessions[i] && is(id, self->sessions[i]->id)) return &self->sessions[i];
  return NULL;
}

static ccbox_status misbehave(const char* how, const ccbox_egress_sink* sink, ccbox_text* error) {
  static char long_value[64 * 1024];
  int i;
  const ccbox_str http = TEXT("127.0.0.1:3128"), socks = TEXT("[::1]:1080"), value = TEXT("x");
  if (strcmp(how, "refuse") == 0) {
    write_text(error, "no proxies today\n");
    return CCBOX_UNAVAILABLE;
  }
  if (strcmp(how, "bad-rule") == 0) {
    write_text(error, "baseline.git: 'git.test': allows nothing: it is denied");
    return CCBOX_INVALID;
  }
  if (strcmp(how, "silent-refuse") == 0) return CCBOX_FAILED;
  if (strcmp(how, "overrun") == 0) {
    error->length = (size_t)-1;
    return CCBOX_FAILED;
  }
  sink->endpoint(sink->ctx, CCBOX_LISTENER_HTTP,
                 strcmp(how, "bad-endpoint") == 0 ? str("localhost:80") : http);
  if (strcmp(how, "no-socks") != 0) sink->endpoint(sink->ctx, CCBOX_LISTENER_SOCKS, socks);
  if (strcmp(how, "bad-kind") == 0) sink->endpoint(sink->ctx, 77, http);
  for (i = 0; i < 100 && strcmp(how, "many-endpoints") == 0; ++i)
    sink->endpoint(sink->ctx, CCBOX_LISTENER_HTTP, http);
  for (i = 0; i < 1000 && strcmp(how, "many-variables") == 0; ++i)
    sink->environment(sink->ctx, str("A"), value, 0);
  if (strcmp(how, "bad-name") == 0) sink->environment(sink->ctx, str("A=B"), value, 0);
  if (strcmp(how, "bad-value") == 0) sink->environment(sink->ctx, str("A"), str("\xff"), 0);
  if (strcmp(how, "bad-flag") == 0) sink->environment(sink->ctx, str("A"), value, 1u << 7);
  memset(long_value, 'x', sizeof long_value - 1);
  if (strcmp(how, "long-value") == 0) sink->environment(sink->ctx, str("A"), str(long_value), 0);
  return CCBOX_OK;
}

/* Lines: "open ID", "rule ACTION FLAGS PATTERN|ORIGIN|REASON", "option KEY=VALUE", "listener KIND ADDRESS",
 * "net_connect PATH". */
static ccbox_status open_pair(ccbox_plugin* self, const ccbox_egress_request* request,
                              const ccbox_egress_sink* sink, ccbox_text* error) {
  size_t i, size = 2;
  char line[4096];
  struct session* made;
  int free_slot = -1, deny_at_open = 0, fail_at_open = 0;
  const char* proxies[] = {"127.0.0.1:3128", "127.0.0.1:1080"};
  pthread_mutex_lock(&self->mutex);
  for (i = 0; i < most_sessions; ++i)
    if (!self->sessions[i] && free_slot < 0) free_slot = (int)i;
  if (slot_of(self, request->session_id) || free_slot < 0 || request->session_id.len >= sizeof made->id) {
    pthread_mutex_unlock(&self->mutex);
    write_text(error, "the session id is in use");
    return CCBOX_INVALID;
  }
  note(self, "open", request->session_id);
  made = calloc(1, sizeof *made);
  made->plugin = self;
  memcpy(made->id, request->session_id.ptr, request->session_id.len);
  for (i = 0; i < request->rule_count; ++i)
    size +=
        2 + ((const ccbox_egress_rule*)(const void*)((const char*)request->rules + i * request->rule_stride))
                ->pattern.len;
  made->allowed = calloc(1, size);
  strcat(made->allowed, "\n");
  for (i = 0; i < request->rule_count; ++i) {
    const ccbox_egress_rule* rule =
        (const ccbox_egress_rule*)(const void*)((const char*)request->rules + i * request->rule_stride);
    snprintf(line, sizeof line, "%u %u %.*s|%.*s|%.*s", rule->action, rule->flags, (int)rule->pattern.len,
             rule->pattern.ptr, (int)rule->origin.len, rule->origin.ptr, (int)rule->reason.len,
             rule->reason.ptr);
    note(self, "rule", str(line));
    if (rule->action == CCBOX_EGRESS_ALLOW) {
      strncat(made->allowed, rule->pattern.ptr, rule->pattern.len);
      strcat(made->allowed, "\n");
    }
    if (is(rule->pattern, "fail-at-open.test")) fail_at_open = 1;
    deny_at_open |= is(rule->pattern, "deny-at-open.test");
    made->deny_at_close |= is(rule->pattern, "deny-at-close.test");
    made->has_thread |= is(rule->pattern, "deny-many.test");
  }
  for (i = 0; i < request->option_count; ++i) {
    const ccbox_option* option =
        (const ccbox_option*)(const void*)((const char*)request->options + i * request->option_stride);
    snprintf(line, sizeof line, "%.*s=%.*s", (int)option->key.len, option->key.ptr, (int)option->value.len,
             option->value.ptr);
    note(self, "option", str(line));
  }
  for (i = 0; i < request->listener_count; ++i) {
    const ccbox_listener* listener =
        (const ccbox_listener*)(const void*)((const char*)request->listeners + i * request->listener_stride);
    snprintf(line, sizeof line, "%u %.*s", listener->kind, (int)listener->address.len, listener->address.ptr);
    note(self, "listener", str(line));
    if (!self->misbehave[0]) sink->endpoint(sink->ctx, listener->kind, listener->address);
    if (listener->kind == CCBOX_LISTENER_HTTP && listener->address.ptr[0] != '[') {
      snprintf(line, sizeof line, "http://%.*s", (int)listener->address.len, listener->address.ptr);
      sink->environment(sink->ctx, str("HTTP_PROXY"), str(line), 0);
    }
  }
  note(self, "net_connect", request->net_connect);
  if (self->misbehave[0]) {
    const ccbox_status status = misbehave(self->misbehave, sink, error);
    if (status != CCBOX_OK) {
      free(made->allowed);
      free(made);
      pthread_mutex_unlock(&self->mutex);
      return status;
    }
  } else if (request->listener_count == 0) {
    sink->endpoint(sink->ctx, CCBOX_LISTENER_HTTP, str(proxies[0]));
    sink->endpoint(sink->ctx, CCBOX_LISTENER_SOCKS, str(proxies[1]));
    sink->environment(sink->ctx, str("HTTP_PROXY"), str("http://127.0.0.1:3128"), 0);
  }
  sink->environment(sink->ctx, str("JAVA_TOOL_OPTIONS"), str("-Dhttp.proxyHost=127.0.0.1"),
                    CCBOX_EGRESS_APPEND);
  self->sessions[free_slot] = made;
  pthread_mutex_unlock(&self->mutex);
  if (deny_at_open) emit_denial(self, made->id, "deny-at-open.test");
  if (fail_at_open) emit(self, made->id, "unreachable", "dns-timeout", "fail-at-open.test");
  if (made->has_thread) made->has_thread = pthread_create(&made->thread, NULL, emit_many, made) == 0;
  return CCBOX_OK;
}

static ccbox_status decide(ccbox_plugin* self, ccbox_str session_id, ccbox_str host, uint16_t port,
                           ccbox_egress_decision* decision, ccbox_text* error) {
  char word[512];
  struct session** slot;
  pthread_mutex_lock(&self->mutex);
  slot = slot_of(self, session_id);
  if (!slot) {
    pthread_mutex_unlock(&self->mutex);
    write_text(error, "no such session");
    return CCBOX_INVALID;
  }
  snprintf(word, sizeof word, "\n%.*s\n", (int)host.len, host.ptr);
  decision->allowed = port != 0 && strstr((*slot)->allowed, word) != NULL;
  pthread_mutex_unlock(&self->mutex);
  if (!decision->allowed) {
    write_text(&decision->reason, "blocked-by-allowlist");
    write_text(&decision->text, "no rule allows it; add --allow-domain");
  } else {
    write_text(&decision->rule, "the rule");
  }
  return CCBOX_OK;
}

static void counters(ccbox_plugin* self, void* ctx, void (*counter)(void*, ccbox_str, ccbox_str, double)) {
  (void)self;
  counter(ctx, str("ccbox_egress_denied_total"), str("reason=\"port\""), 3);
}

static void close_pair(ccbox_plugin* self, ccbox_str session_id) {
  struct session** slot;
  struct session* ended;
  pthread_mutex_lock(&self->mutex);
  slot = slot_of(self, session_id);
  ended = slot ? *slot : NULL;
  if (slot) *slot = NULL;
  note(self, ended ? "close" : "close again", session_id);
  pthread_mutex_unlock(&self->mutex);
  if (!ended) return;
  if (ended->has_thread) pthread_join(ended->thread, NULL);
  if (ended->deny_at_close) emit_denial(self, ended->id, "deny-at-close.test");
  free(ended->allowed);
  free(ended);
}

static ccbox_status create(const ccbox_host* host, const ccbox_config* config, ccbox_plugin** out,
                           ccbox_text* error) {
  size_t i;
  ccbox_plugin* made = calloc(1, sizeof *made);
  if (!made) return CCBOX_FAILED;
  made->host = host;
  pthread_mutex_init(&made->mutex, NULL);
  for (i = 0; i < config->option_count; ++i) {
    const ccbox_option* option =
        (const ccbox_option*)(const void*)((const char*)config->options + i * config->option_stride);
    if (is(option->key, "record") && option->value.len < sizeof made->record) {
      memcpy(made->record, option->value.ptr, option->value.len);
    } else if (is(option->key, "misbehave") && option->value.len < sizeof made->misbehave) {
      memcpy(made->misbehave, option->value.ptr, option->value.len);
    } else {
      free(made);
      write_text(error, "unknown option");
      return CCBOX_INVALID;
    }
  }
  *out = made;
  return CCBOX_OK;
}

static void destroy(ccbox_plugin* self) {
  int i;
  for (i = 0; i < most_sessions; ++i)
    if (self->sessions[i]) note(self, "left open", str(self->sessions[i]->id));
  note(self, "destroy", str(""));
  pthread_mutex_destroy(&self->mutex);
  free(self);
}

static const void* get_extension(ccbox_plugin* self, ccbox_str name) {
  static const ccbox_egress table = {FAKE_TABLE_SIZE, 0,        check_rule, open_pair,
                                     FAKE_DECIDE,     counters, close_pair};
  (void)self;
  (void)decide;
  return is(name, CCBOX_EGRESS_EXTENSION) ? &table : NULL;
}

CCBOX_EXPORT const ccbox_plugin_descriptor* ccbox_plugin_v1(void) {
  static const ccbox_plugin_descriptor descriptor = {
      sizeof descriptor, CCBOX_ABI_MINOR, TEXT(FAKE_NAME), TEXT("1.0"), create, destroy, get_extension};
  return &descriptor;
}
