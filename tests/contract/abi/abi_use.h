/* Uses every part of the ABI header in the common subset of C11, C17, C++17 and C++20; compiled, not run. */
static ccbox_str use_str(const char *text, size_t length) {
  ccbox_str out;
  out.ptr = text;
  out.len = length;
  return out;
}

static ccbox_status use_create(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out,
                               ccbox_text *error) {
  (void)out;
  if (!CCBOX_HAS(config, ccbox_config, option_count)) {
    error->length = 0;
    return CCBOX_INVALID;
  }
  if (CCBOX_HAS(host, ccbox_host, get_extension)) host->log(host->ctx, CCBOX_INFO, use_str("x", 1));
  return CCBOX_OK;
}

static void use_destroy(ccbox_plugin *plugin) { (void)plugin; }

static ccbox_status use_probe(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                              ccbox_text *error) {
  (void)plugin;
  (void)error;
  result->available = request->depth == CCBOX_PROBE_FULL;
  result->enforced = CCBOX_RULE_FS_BINDS_ONLY | CCBOX_RULE_KERNEL_BOUNDARY;
  return CCBOX_UNAVAILABLE;
}

static ccbox_status use_plan(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                             ccbox_text *error) {
  size_t i;
  (void)plugin;
  (void)error;
  for (i = 0; i < request->rule_count; ++i) {
    const ccbox_rule *rule =
        (const ccbox_rule *)(const void *)((const char *)request->rules + i * request->rule_stride);
    if (rule->kind == CCBOX_KIND_MOUNT && (rule->flags & CCBOX_RULE_READ_ONLY)) sink->argument(sink->ctx, rule->path);
    sink->layer(sink->ctx, i, rule->reason);
  }
  sink->flags(sink->ctx, CCBOX_PLAN_IDENTITY_USERNS | CCBOX_PLAN_UNCONFINED);
  return request->network == CCBOX_NETWORK_HOST ? CCBOX_UNENFORCEABLE : CCBOX_OK;
}

static ccbox_backend backend;

static const void *use_extension(ccbox_plugin *plugin, ccbox_str name) {
  (void)plugin;
  if (name.len != sizeof CCBOX_BACKEND_EXTENSION - 1) return NULL;
  backend.size = (uint32_t)sizeof backend;
  backend.kind = use_str("native", 6);
  backend.probe = use_probe;
  backend.plan = use_plan;
  return &backend;
}

static ccbox_plugin_descriptor descriptor;

const ccbox_plugin_descriptor *ccbox_plugin_v1(void) {
  descriptor.size = (uint32_t)sizeof descriptor;
  descriptor.abi_minor = CCBOX_ABI_MINOR;
  descriptor.name = use_str("abi", 3);
  descriptor.version = use_str("1", 1);
  descriptor.create = use_create;
  descriptor.destroy = use_destroy;
  descriptor.get_extension = use_extension;
  return &descriptor;
}
