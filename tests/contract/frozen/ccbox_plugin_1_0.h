/* The plugin ABI of ccbox, version 1.0 (C11; compiles as C17, C++17 and C++20 too).
 *
 * A plugin is a shared object that exports exactly one symbol, ccbox_plugin_v1, which returns a static
 * descriptor. Everything else is reached through tables of function pointers.
 *
 * Rules that hold everywhere in this file:
 *  - Tables and structs start with `size`, the sizeof the side that filled it in was compiled with. They only
 *    ever grow at the end. Read a member only if it lies wholly inside `size` (CCBOX_HAS).
 *  - Arrays of structs come with a stride: step by the stride, never by your own sizeof.
 *  - A ccbox_str is {pointer, length}, any bytes, no terminator, borrowed for the duration of the call.
 *  - Neither side frees the other's memory. Results go into sinks and buffers that the caller owns.
 *  - A function that can fail returns a ccbox_status and writes one line of text, naming the object, the cause
 *    and the remedy, into the caller's ccbox_text.
 *  - No exception may leave a function of this ABI.
 *  - A rule bit that a plugin does not know is a bit that it cannot enforce: never echo unknown bits back.
 *
 * Thread tags: [main] the thread that loads plugins, one call at a time; [any] any thread, calls may overlap.
 * docs/abi.md explains how to write a plugin; tests/contract is the suite that every plugin must pass.
 */
#ifndef CCBOX_PLUGIN_H
#define CCBOX_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCBOX_ABI_MAJOR 1
#define CCBOX_ABI_MINOR 0

#if defined(__GNUC__)
#define CCBOX_EXPORT __attribute__((visibility("default")))
#else
#define CCBOX_EXPORT
#endif

/* True if `member` of the struct that `ptr` points to lies inside the size its filler declared. */
#define CCBOX_HAS(ptr, type, member) \
  ((ptr)->size >= offsetof(type, member) + sizeof(((type *)0)->member))

typedef struct ccbox_str {
  const char *ptr;
  size_t len;
} ccbox_str;

/* A caller-owned buffer for one line of text. The callee writes at most `capacity` bytes and sets `length`. */
typedef struct ccbox_text {
  char *ptr;
  size_t capacity;
  size_t length;
} ccbox_text;

typedef int32_t ccbox_status;
enum {
  CCBOX_OK = 0,
  CCBOX_INVALID = 1,       /* the caller passed something malformed: an option, a path, an empty argv */
  CCBOX_UNAVAILABLE = 2,   /* this host cannot do it: a tool, a kernel feature, a permission is missing */
  CCBOX_UNENFORCEABLE = 3, /* a required rule cannot be enforced: never go on without it */
  CCBOX_FAILED = 4,        /* it should have worked and did not */
  CCBOX_TOO_LARGE = 5      /* more rules, arguments or bytes than the mechanism takes */
};

/* Rule bits: one enforceable promise each. required & ~enforced must be 0 for a launch. */
#define CCBOX_RULE_FS_BINDS_ONLY ((uint64_t)1 << 0)   /* nothing of the host is visible but what is bound */
#define CCBOX_RULE_FS_READ_DENY ((uint64_t)1 << 1)    /* named paths cannot be read */
#define CCBOX_RULE_FS_WRITE_DENY ((uint64_t)1 << 2)   /* named paths cannot be written, renamed or removed */
#define CCBOX_RULE_FS_NAME_DENY ((uint64_t)1 << 3)    /* names that match cannot be created */
#define CCBOX_RULE_EXEC_DENY ((uint64_t)1 << 4)       /* named programs cannot be executed */
#define CCBOX_RULE_NET_PROXY_ONLY ((uint64_t)1 << 5)  /* no way out but the session's proxies */
#define CCBOX_RULE_PID_ISOLATION ((uint64_t)1 << 6)   /* no host process is visible or can be signalled */
#define CCBOX_RULE_RESOURCE_LIMITS ((uint64_t)1 << 7) /* processes inherit the limits the kernel of ccbox sets */
#define CCBOX_RULE_KERNEL_BOUNDARY ((uint64_t)1 << 8) /* the workload runs on a kernel of its own */

/* ---- what the host gives to a plugin -------------------------------------------------------------- */

typedef int32_t ccbox_level;
enum { CCBOX_DEBUG = 0, CCBOX_INFO = 1, CCBOX_WARN = 2, CCBOX_ERROR = 3 };

typedef struct ccbox_host {
  uint32_t size;
  uint32_t abi_minor;
  void *ctx;
  /* [any] One log line, without secrets. Text of a sandboxed process is quoted by the host. */
  void (*log)(void *ctx, ccbox_level level, ccbox_str text);
  /* [any] An event for a session's stream: `type` names it, `json` is its body (one JSON object). */
  ccbox_status (*emit)(void *ctx, ccbox_str session_id, ccbox_str type, ccbox_str json);
  /* [any] A host extension such as "ccbox.NAME/1", or NULL. Lives as long as the process. */
  const void *(*get_extension)(void *ctx, ccbox_str name);
} ccbox_host;

/* One option of the manifest entry, `options: {key: value}`; values are the scalars as written. */
typedef struct ccbox_option {
  ccbox_str key;
  ccbox_str value;
} ccbox_option;

typedef struct ccbox_config {
  uint32_t size;
  uint32_t option_stride;
  const ccbox_option *options;
  size_t option_count;
} ccbox_config;

/* ---- what a plugin exports ------------------------------------------------------------------------ */

typedef struct ccbox_plugin ccbox_plugin; /* the plugin's own state, opaque to the host */

typedef struct ccbox_plugin_descriptor {
  uint32_t size;
  uint32_t abi_minor;
  ccbox_str name;    /* [a-z][a-z0-9_-]{0,31}, unique among the loaded plugins */
  ccbox_str version; /* the plugin's own */
  /* [main] Makes an instance. `host` lives until destroy returns. An option it does not know is an error that
   * names the option. Starts no thread before it is called. Limit: 1 s. */
  ccbox_status (*create)(const ccbox_host *host, const ccbox_config *config, ccbox_plugin **out, ccbox_text *error);
  /* [main] Ends every thread of the instance and frees it. Never fails. Limit: 1 s. */
  void (*destroy)(ccbox_plugin *plugin);
  /* [any] The extension table called `name`, or NULL. Lives until destroy. */
  const void *(*get_extension)(ccbox_plugin *plugin, ccbox_str name);
} ccbox_plugin_descriptor;

/* The one exported symbol; the major version is in its name. Returns a static descriptor. */
CCBOX_EXPORT const ccbox_plugin_descriptor *ccbox_plugin_v1(void);
typedef const ccbox_plugin_descriptor *(*ccbox_plugin_entry)(void);

/* ---- extension "ccbox.backend/1" ------------------------------------------------------------------ */

#define CCBOX_BACKEND_EXTENSION "ccbox.backend/1"

typedef uint32_t ccbox_probe_depth;
enum {
  CCBOX_PROBE_QUICK = 0, /* look, start nothing: the launch itself proves it (limit 50 ms) */
  CCBOX_PROBE_FULL = 1   /* start a trivial enclosure once and say what is missing if it fails (limit 5 s) */
};

typedef struct ccbox_probe_request {
  uint32_t size;
  ccbox_probe_depth depth;
  ccbox_str init_path; /* ccbox-init on the host, as in a plan; empty: what needs it is not tried, and not claimed */
} ccbox_probe_request;

/* Owned by the caller; the plugin fills it in. */
typedef struct ccbox_probe_result {
  uint32_t size;
  uint32_t available;        /* 1: can start enclosures here */
  uint32_t requires_install; /* 1: `hint` names packages to install */
  uint32_t reserved;
  uint64_t enforced;         /* the rule bits it can enforce on this host */
  ccbox_text note;           /* what it is, one line */
  /* When not available, or when this host keeps it from claiming a bit: what the operator can do, one line, and a word
   * for machines, e.g. "missing-tool", "no-user-namespaces", "no-landlock". */
  ccbox_text hint;
  ccbox_text cause;
} ccbox_probe_result;

/* A concrete rule of the compiled policy. Unknown kinds and flags are covered by `bit`: a backend that claims a
 * bit must handle every kind of this header version that carries it. */
typedef uint32_t ccbox_rule_kind;
enum {
  CCBOX_KIND_MOUNT = 1,      /* bind host path `path` at `guest_path`; bit FS_BINDS_ONLY */
  CCBOX_KIND_READ_DENY = 2,  /* `path` and what is below cannot be read; bit FS_READ_DENY */
  CCBOX_KIND_WRITE_DENY = 3, /* `path` and what is below cannot be written, renamed, removed; FS_WRITE_DENY */
  CCBOX_KIND_NAME_DENY = 4,  /* glob under `guest_path` (a writable root): matching names cannot be made; FS_NAME_DENY */
  CCBOX_KIND_NAME_EXEMPT = 5,/* glob that NAME_DENY does not cover, e.g. the samples under .git/hooks */
  CCBOX_KIND_EXEC_DENY = 6,  /* `path` (or glob) cannot be executed; EXEC_DENY */
  CCBOX_KIND_EXEC_GRANT = 7  /* tree re-opened for executing */
};

enum {
  CCBOX_RULE_READ_ONLY = 1u << 0, /* MOUNT: read-only */
  CCBOX_RULE_GLOB = 1u << 1,      /* `path` has * or ? */
  CCBOX_RULE_EXISTS = 1u << 2,    /* the path exists on the host now */
  CCBOX_RULE_DIRECTORY = 1u << 3, /* ... as a directory */
  CCBOX_RULE_SYMLINK = 1u << 4,   /* ... as, or through, a symbolic link (never followed for you) */
  CCBOX_RULE_SYSTEM = 1u << 5,    /* MOUNT: part of the operating system's view, not of the spec */
  CCBOX_RULE_TARGET = 1u << 6,    /* the symlink-resolved spelling of the rule before it */
  /* NAME_DENY: such a file may come into place if its content, git's configuration, can do no harm and nobody inside
   * can change it afterwards. A backend that does not check that takes the rule as any other. */
  CCBOX_RULE_VETTED_GIT_CONFIG = 1u << 7,
  /* NAME_DENY: only what is there at the start needs protection, for which it has rules of its own; a new one may be
   * made. A backend that does not know that takes the rule as any other. */
  CCBOX_RULE_NEW_ALLOWED = 1u << 8
};

typedef struct ccbox_rule {
  ccbox_rule_kind kind;
  uint32_t flags;
  uint64_t bit;
  ccbox_str path;       /* absolute host path or glob; NAME kinds: a glob relative to guest_path or one path inside */
  ccbox_str guest_path; /* absolute path inside; empty: no mount shows it. NAME kinds: the writable root it is for */
  ccbox_str reason;     /* for people */
} ccbox_rule;

typedef uint32_t ccbox_network;
enum {
  CCBOX_NETWORK_PROXY_ONLY = 0, /* unshared: the session's proxies or nothing */
  CCBOX_NETWORK_HOST = 1        /* the host's network, only where net_proxy_only was waived */
};

typedef struct ccbox_plan_request {
  uint32_t size;
  uint32_t rule_stride;
  const ccbox_rule *rules;
  size_t rule_count;
  uint64_t required; /* bits this launch relies on */
  uint64_t waived;   /* bits the spec gave up by name: do not apply their rules */
  ccbox_str session_id;
  ccbox_str workdir; /* absolute, inside; where init starts */
  ccbox_str home;    /* absolute, inside; must exist, private to the session, unless a mount covers it */
  ccbox_str tmpdir;  /* absolute, inside; must exist, private to the session */
  ccbox_network network;
  uint32_t uid;      /* the caller's ids */
  uint32_t gid;
  int32_t channel_fd;  /* number under which the started process finds the control channel */
  int32_t init_fd;     /* number under which the started process finds ccbox-init's executable, open for reading */
  ccbox_str init_path; /* ccbox-init on the host, for backends that cannot pass descriptors */
} ccbox_plan_request;

/* Owned by the caller. Call in any order; the texts are copied. argv[0] must be an absolute path. */
typedef struct ccbox_plan_sink {
  uint32_t size;
  uint32_t reserved;
  void *ctx;
  /* Appends to the argv that the kernel starts. It must end in running ccbox-init with `--channel N`. */
  void (*argument)(void *ctx, ccbox_str text);
  /* Environment of the launcher alone; it starts from empty. Commands get theirs from init. */
  void (*environment)(void *ctx, ccbox_str name, ccbox_str value);
  /* A sealed, read-only file. Returns the descriptor number under which the started process finds it. */
  int32_t (*file)(void *ctx, ccbox_str label, ccbox_str bytes);
  /* A host path, opened O_PATH without following any symbolic link when the plan is started; the start fails if it
   * cannot be. Returns the descriptor number under which the started process finds it. */
  int32_t (*open_path)(void *ctx, ccbox_str host_path);
  /* Which layer enforces rule number `index`, for explain: "mount: read-only bind over it". */
  void (*layer)(void *ctx, size_t index, ccbox_str text);
  /* The bits that this very plan enforces. Called once. */
  void (*enforces)(void *ctx, uint64_t bits);
  /* CCBOX_PLAN_* flags. The host refuses a plan with a flag that it does not know: isolation may rest on it. */
  void (*flags)(void *ctx, uint32_t flags);
  /* Returns the descriptor number under which the started process finds a Unix packet socket. Each packet that it
   * sends is the body of one event "denial" of the session (docs/abi.md). Once a plan. */
  int32_t (*denials)(void *ctx);
} ccbox_plan_sink;

enum {
  /* Start argv in a user namespace where every id maps to itself. Only for a root caller: its files and those of
   * others keep their owners, and its capabilities count in the enclosure only. The mount namespace is a new one too,
   * which hears of no mount that the host makes later, and in which what is mounted at and below /dev is read-only. */
  CCBOX_PLAN_IDENTITY_USERNS = 1u << 0,
  /* There is no boundary: ccbox-init runs as an ordinary process of the host. Backend `none`. */
  CCBOX_PLAN_UNCONFINED = 1u << 1
};

typedef struct ccbox_backend {
  uint32_t size;
  uint32_t reserved;
  /* "native", "microvm" or "none": how the specification's SandboxBackend names it. */
  ccbox_str kind;
  /* What this host offers. [main] once at boot, later [any], but never two calls at once; plan may run meanwhile. */
  ccbox_status (*probe)(ccbox_plugin *plugin, const ccbox_probe_request *request, ccbox_probe_result *result,
                        ccbox_text *error);
  /* [any] How to start the enclosure. Starts nothing, writes nothing. Limit: 50 ms. */
  ccbox_status (*plan)(ccbox_plugin *plugin, const ccbox_plan_request *request, const ccbox_plan_sink *sink,
                       ccbox_text *error);
} ccbox_backend;

/* ---- extension "ccbox.egress/1" -------------------------------------------------------------------- */

#define CCBOX_EGRESS_EXTENSION "ccbox.egress/1"

typedef uint32_t ccbox_egress_action;
enum {
  CCBOX_EGRESS_ALLOW = 1,   /* `pattern` is a domain pattern or an address, with an optional :port */
  CCBOX_EGRESS_DENY = 2,    /* the same; deny wins over allow */
  CCBOX_EGRESS_FLOOR = 3,   /* an address range that no rule opens, on top of the plugin's own */
  CCBOX_EGRESS_RESOLVED = 4 /* a range that is not global and that an allowed name may resolve into all the same */
};

enum { CCBOX_EGRESS_GIT_HOST = 1u << 0 /* ALLOW: without a port the entry means 22 too */ };

typedef struct ccbox_egress_rule {
  ccbox_egress_action action;
  uint32_t flags;
  ccbox_str pattern;
  ccbox_str origin; /* where it comes from, for messages: "baseline.llm", "--allow-domain" */
  ccbox_str reason; /* for people */
} ccbox_egress_rule;

typedef uint32_t ccbox_listener_kind;
enum {
  CCBOX_LISTENER_HTTP = 1, /* HTTP and HTTPS proxy; both kinds tell the protocols apart by the first byte */
  CCBOX_LISTENER_SOCKS = 2
};

/* A listening stream socket, TCP or Unix. The plugin duplicates the descriptor; the caller keeps its own. */
typedef struct ccbox_listener {
  ccbox_listener_kind kind;
  int32_t fd;
  ccbox_str address; /* ip:port at which the session's commands find it; empty: the socket's own */
} ccbox_listener;

typedef struct ccbox_egress_request {
  uint32_t size;
  uint32_t rule_stride;
  const ccbox_egress_rule *rules; /* no ALLOW among them: everything is refused, and reported */
  size_t rule_count;
  uint32_t listener_stride;
  uint32_t option_stride;
  const ccbox_listener *listeners; /* none: the plugin listens on two ports of 127.0.0.1 of its own choice */
  size_t listener_count;
  const ccbox_option *options; /* settings of the session; one that the plugin does not know is CCBOX_INVALID */
  size_t option_count;
  ccbox_str session_id;
  ccbox_str net_connect; /* path, for the session's commands, of the ProxyCommand helper; empty: there is none */
} ccbox_egress_request;

enum { CCBOX_EGRESS_APPEND = 1u << 0 /* to a value that is there already, after a space */ };

/* Owned by the caller; the texts are copied. */
typedef struct ccbox_egress_sink {
  uint32_t size;
  uint32_t reserved;
  void *ctx;
  /* Where the session's commands find the pair: ip:port. At least once per kind. */
  void (*endpoint)(void *ctx, ccbox_listener_kind kind, ccbox_str address);
  /* Environment of the session's commands, set after sanitising. */
  void (*environment)(void *ctx, ccbox_str name, ccbox_str value, uint32_t flags);
} ccbox_egress_sink;

/* Owned by the caller; the plugin fills it in. */
typedef struct ccbox_egress_decision {
  uint32_t size;
  uint32_t allowed;
  ccbox_text reason; /* a word for machines: "blocked-by-allowlist", "malformed", … ; empty when allowed */
  ccbox_text rule;   /* the pattern that decided, with its origin; empty: none matched */
  ccbox_text text;   /* for people: what and why, and the remedy */
} ccbox_egress_decision;

typedef struct ccbox_egress {
  uint32_t size;
  uint32_t reserved;
  /* [any] Is this a rule that open() would take? CCBOX_INVALID: the text names the cause and the remedy; the caller
   * knows where the rule was written. */
  ccbox_status (*check_rule)(ccbox_plugin *plugin, const ccbox_egress_rule *rule, ccbox_text *error);
  /* [any] Starts the session's pair; it accepts when this returns. A session id in use, a bad rule or option is
   * CCBOX_INVALID and starts nothing; so is an ALLOW rule that the others refuse whole. What is said of a bad rule begins
   * with "ORIGIN: 'PATTERN': ", by which the caller finds where it was written. Denials come as events of type "denial"
   * (docs/abi.md). Limit: 100 ms. */
  ccbox_status (*open)(ccbox_plugin *plugin, const ccbox_egress_request *request, const ccbox_egress_sink *sink,
                       ccbox_text *error);
  /* [any] What the session's rules say about a destination, as a client would write it. No name is resolved. */
  ccbox_status (*decide)(ccbox_plugin *plugin, ccbox_str session_id, ccbox_str host, uint16_t port,
                         ccbox_egress_decision *decision, ccbox_text *error);
  /* [any] Calls `counter` for each counter of all sessions: a name and labels as Prometheus writes them
   * (`ccbox_egress_denied_total`, `reason="port"`), and the value. */
  void (*counters)(ccbox_plugin *plugin, void *ctx,
                   void (*counter)(void *ctx, ccbox_str name, ccbox_str labels, double value));
  /* [any] Ends the session's pair: when it returns, nothing is accepted any more; connections, lookups and memory are
   * gone within 100 ms. An id that is not open is nothing. */
  void (*close)(ccbox_plugin *plugin, ccbox_str session_id);
} ccbox_egress;

/* ---- extension "ccbox.monitor/1" ------------------------------------------------------------------- */

#define CCBOX_MONITOR_EXTENSION "ccbox.monitor/1"

/* A refused action: what the host tells the monitor of, and what the monitor makes of it for people. Texts come escaped
 * and are escaped again by the host on the way back, so nothing in them can forge a line. */
typedef struct ccbox_violation {
  uint32_t size;
  uint32_t reserved;
  uint64_t exec_id;               /* the command, as events number them; 0: not known */
  uint64_t count;                 /* how many it stands for, at least 1 */
  ccbox_str action;               /* the denied verb: "file-write-create", "network-outbound" */
  ccbox_str target;               /* a path inside, or host:port */
  ccbox_str suggested_capability; /* of the spec's capabilities, the one that would allow it; empty: none */
  ccbox_str raw;                  /* what was said of it, one JSON object; empty: nothing */
} ccbox_violation;

enum {
  /* The backend tells of refused actions itself: output is of use for what it cannot see, such as refused reads. */
  CCBOX_MONITOR_DENIALS_REPORTED = 1u << 0
};

typedef struct ccbox_monitor_request {
  uint32_t size;
  uint32_t flags;
  const ccbox_rule *rules; /* the session's compiled policy, as plan() gets it */
  size_t rule_count;
  uint32_t rule_stride;
  uint32_t reserved;
  uint64_t enforced; /* the rule bits that hold; rules of others are not applied */
  ccbox_str session_id;
  ccbox_str workdir; /* absolute, inside: where commands start unless they are told otherwise */
} ccbox_monitor_request;

/* Owned by the caller, for the duration of one call. What it is given is copied. */
typedef struct ccbox_monitor_sink {
  uint32_t size;
  uint32_t reserved;
  void *ctx;
  /* One event for the session's stream. A thousand a call at most; what is more is lost. */
  void (*violation)(void *ctx, const ccbox_violation *violation);
} ccbox_monitor_sink;

typedef struct ccbox_watch ccbox_watch; /* what the monitor keeps of one session, opaque to the host */

/* Calls for one watch never overlap; those for different ones may. None of them may call the host's emit, nor block. */
typedef struct ccbox_monitor {
  uint32_t size;
  uint32_t reserved;
  /* [any] A session is about to start. A monitor with a source of its own (the system's log) may begin to read it here,
   * on a thread of its own, and emit events of type "violation". Limit: 10 ms. */
  ccbox_status (*open)(ccbox_plugin *plugin, const ccbox_monitor_request *request, ccbox_watch **out, ccbox_text *error);
  /* [any] An action was refused. Limit: 1 ms. */
  void (*denial)(ccbox_watch *watch, const ccbox_violation *denial, const ccbox_monitor_sink *sink);
  /* [any] The next bytes, any bytes, of what a command wrote to its standard error or its terminal; none: it has ended.
   * They have been passed on already, or will be, as they are. Limit: 5 ms for 64 KiB. */
  void (*output)(ccbox_watch *watch, uint64_t exec_id, ccbox_str bytes, const ccbox_monitor_sink *sink);
  /* [any] Tells what has been counted and not told yet. `last`: 1, and everything, when the session has ended. Returns
   * after how many milliseconds it is to be called again; 0: not before the next denial or output. Limit: 10 ms. */
  uint32_t (*flush)(ccbox_watch *watch, uint32_t last, const ccbox_monitor_sink *sink);
  /* [any] Ends the watch and frees it. Never fails. Limit: 100 ms. */
  void (*close)(ccbox_watch *watch);
} ccbox_monitor;

#ifdef __cplusplus
}
#endif

#endif /* CCBOX_PLUGIN_H */
