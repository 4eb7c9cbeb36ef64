/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/plugin.h - the header of a backend plugin.
 *
 * [PL-1] A plugin is a shared object that exports only these three symbols:
 *
 *     tenrec_plugin             const data: name, ABI and options
 *     tenrec_construct_options  check and complete one filled options struct
 *     tenrec_init_agent         make one agent from it
 *
 * [PL-2] The core reads tenrec_plugin before it calls any code of the plugin. It refuses a plugin
 * that does not fit, and says why. */
#ifndef TENREC_PLUGIN_H
#define TENREC_PLUGIN_H

#include <tenrec/agent.h>

#ifdef __cplusplus
extern "C" {
#endif

/* [PL-3] The core refuses a plugin with another major ABI, and accepts one with another minor ABI.
 * An older plugin has shorter structs, which the core recognises by their size. A newer plugin
 * checks host->size (TENREC_HAS) before it uses services of a later minor ABI. */
#define TENREC_PLUGIN_MAGIC 0x544e5243u /* "TNRC" */
#define TENREC_ABI_MAJOR 1              /* changes when old plugins break */
#define TENREC_ABI_MINOR 1              /* counts additions at struct ends */

#define TENREC_EXPORT __attribute__((visibility("default")))

/* The product of a plugin. */
enum tenrec_plugin_kind {
    TENREC_PLUGIN_BACKEND = 1,
    TENREC_PLUGIN_STORE = 2,
    TENREC_PLUGIN_OBSERVER = 3,
};

#define TENREC_FOREVER UINT64_MAX /* a duration written as `none` */

/* The value of an option. Never grows: the core fills it in the options struct of a plugin. */
union tenrec_option_value {
    bool b;         /* TENREC_OPT_BOOL */
    int64_t i;      /* TENREC_OPT_INT */
    double d;       /* TENREC_OPT_DOUBLE */
    uint64_t ms;    /* TENREC_OPT_DURATION */
    uint64_t bytes; /* TENREC_OPT_SIZE */
    const char *s;  /* TENREC_OPT_STRING, owned by the core */
};

/* The values of a list. Never grows, like tenrec_option_value. */
struct tenrec_option_list {
    const union tenrec_option_value *v; /* owned by the core */
    size_t n;
};

/* An item of a map. Never grows, like tenrec_option_value. */
struct tenrec_option_pair {
    const char *key;
    union tenrec_option_value value;
};

/* The items of a map. Never grows, like tenrec_option_value. */
struct tenrec_option_map {
    const struct tenrec_option_pair *v; /* owned by the core, in file order */
    size_t n;
};

/* The structs of a TENREC_OPT_RECORDS. Never grows, like tenrec_option_value. */
struct tenrec_option_records {
    const void *v;            /* structs of record->size bytes each; owned by the core */
    const char *const *where; /* of each: "cluster.yaml:9:7", or "" for a default;
                                 owned by the core */
    size_t n;
};

/* The type of an option is the type of the member at its offset in the options struct. */
enum tenrec_option_type {
    TENREC_OPT_BOOL = 1, /* bool:        true, false */
    TENREC_OPT_INT,      /* int64_t:     within [min, max] */
    TENREC_OPT_DOUBLE,   /* double:      within [min, max] */
    TENREC_OPT_DURATION, /* uint64_t ms: 250ms, 1.5s, 2m, 1h, none */
    TENREC_OPT_SIZE,     /* uint64_t bytes: 512, 64KiB, 1MiB, 2GiB, kB, MB, GB */
    TENREC_OPT_STRING,   /* const char *, owned by the core */
    TENREC_OPT_LIST,     /* struct tenrec_option_list of `item` */
    TENREC_OPT_MAP,      /* struct tenrec_option_map from text to `item` */
    TENREC_OPT_RECORDS,  /* struct tenrec_option_records: a list of maps, each parsed by the
                            table of `record` */
};

enum tenrec_option_flags {
    TENREC_OPT_PLAIN_SECONDS = 1u << 0, /* a duration may also be a bare number
                                           of seconds, as torch writes it */
    TENREC_OPT_SECRET = 1u << 1,        /* the value is never printed */
    TENREC_OPT_SINGLE = 1u << 2,        /* a list of one may be written as its item alone */
};

/* One option. The core parses the default and the user's value with the same
 * parser, checks range and choices, refuses unknown keys with the nearest name and prints the
 * options in `tenrec info`; the plugin receives a filled struct.
 * Grows at its end: option_size is the step of a table. */
struct tenrec_option {
    const char *key; /* as in YAML */
    enum tenrec_option_type type;
    enum tenrec_option_type item;              /* of a list or map; else 0 */
    uint32_t offset;                           /* offsetof in the options struct */
    uint32_t flags;                            /* enum tenrec_option_flags */
    const char *def;                           /* as a user would write it, without quotes:
                                                  "[uv]", "60s"; NULL leaves zero */
    int64_t min, max;                          /* INT, DOUBLE, DURATION in ms, SIZE, and each
                                                  item of a list or map of those; both 0 = no
                                                  limit, max < min = no upper one. `none` is
                                                  above every limit */
    const char *choices;                       /* "busy|adaptive|sleep": the strings (items,
                                                  keys of a map) allowed; NULL = any */
    const char *help;                          /* one sentence */
    const struct tenrec_option_record *record; /* of RECORDS; else NULL */
    const void *reserved[1];
};

/* The options of each map of a TENREC_OPT_RECORDS, and the struct that they fill.
 * Never grows: `reserved` and the option tables have room for more. */
struct tenrec_option_record {
    const struct tenrec_option *options; /* any type but RECORDS */
    uint32_t n_options;
    uint32_t option_size; /* sizeof(struct tenrec_option) */
    uint32_t size;        /* of the struct */
    uint32_t reserved;
};

/* [PL-8] A setuid or setgid program loads only plugins with the flag TENREC_PLUGIN_SETUID. The
 * flag means that the plugin, and each library that it links or loads, reads the environment only
 * by secure_getenv. The core reads the flag in the file before it loads the file, so the
 * file must keep its section table. */
enum tenrec_plugin_flags {
    TENREC_PLUGIN_WRAPS = 1u << 0,         /* needs an inner agent */
    TENREC_PLUGIN_CUDA = 1u << 1,          /* moves device memory */
    TENREC_PLUGIN_UNLOADABLE = 1u << 2,    /* leaves no thread, TLS or atexit after destroy: may
                                              be unmapped */
    TENREC_PLUGIN_LOOPBACK_ONLY = 1u << 3, /* reaches only this process */
    TENREC_PLUGIN_PROVES = 1u << 4,        /* begins each connection with a proof (proof.h) */
    TENREC_PLUGIN_ENCRYPTS = 1u << 6,      /* carries TLS between hosts when asked (tls.h) */
    TENREC_PLUGIN_TLS = 1u << 5,           /* a store that opens NAMEs://, too: the same by TLS */
    TENREC_PLUGIN_SETUID = 1u << 7,        /* see above */
    TENREC_PLUGIN_LINKS = 1u << 8,         /* knows members of other groups ([AG-42]) */
};

struct tenrec_plugin {
    /* [PL-4] The next five members never change, in any ABI. */
    uint32_t magic;                /* TENREC_PLUGIN_MAGIC */
    uint16_t abi_major, abi_minor; /* compiled against */
    uint32_t size;                 /* sizeof(struct tenrec_plugin) */
    uint32_t kind;                 /* enum tenrec_plugin_kind */

    uint32_t flags; /* enum tenrec_plugin_flags */
    uint32_t reserved0;
    const char *name;    /* [a-z0-9_]+, unique in a process */
    const char *version; /* of the plugin, for people */
    const char *summary; /* one sentence */
    const struct tenrec_option *options;
    uint32_t n_options;
    uint32_t option_size;  /* sizeof(struct tenrec_option) */
    uint32_t options_size; /* sizeof your options struct */
    uint32_t reserved1;

    const void *reserved2;
    const struct tenrec_extension *extensions; /* NULL: none */
    const void *reserved3[3];
};

/* [PL-5] An optional extension that reports which parts of the plugin work on this machine. It
 * pushes keys such as "transport.uv" with "viable" or "not viable: why". It starts nothing and
 * leaves nothing open. Tools call it in a separate process. */
struct tenrec_probe {
    struct tenrec_extension extension; /* TENREC_EXTENSION_PROBE */
    void (*probe)(const void *options, tenrec_sink_fn *sink, void *arg);
};

#define TENREC_EXTENSION_PROBE 3u

/* [PL-9] An optional extension of a store or an observer. It checks the URL or address as init
 * does, with the same errors, but resolves, opens and starts nothing. `tenrec check` calls it. */
struct tenrec_address_check {
    struct tenrec_extension extension; /* TENREC_EXTENSION_ADDRESS */
    tenrec_status (*check)(const void *options, const char *address, tenrec_error *err);
};

#define TENREC_EXTENSION_ADDRESS 6u

/* Begins the description of a backend; TENREC_STORE_PLUGIN_HEADER begins that of a store. C++
 * before C++20 has no designated initializers, so there the same macros give the members in their
 * order. In every C++ keep the order of the members: TENREC_PLUGIN_OPTIONS comes after the
 * summary. */
#if !defined(__cplusplus) || __cplusplus >= 202002L
#define TENREC_PLUGIN_HEADER_OF(plugin_kind)                                                       \
    .magic = TENREC_PLUGIN_MAGIC, .abi_major = TENREC_ABI_MAJOR, .abi_minor = TENREC_ABI_MINOR,    \
    .size = sizeof(struct tenrec_plugin), .kind = (plugin_kind)

#define TENREC_PLUGIN_OPTIONS(table, type)                                                         \
    .options = (table), .n_options = sizeof(table) / sizeof((table)[0]),                           \
    .option_size = sizeof((table)[0]), .options_size = sizeof(type)

#define TENREC_OPTION_RECORD(table, type)                                                          \
    {                                                                                              \
        .options = (table), .n_options = sizeof(table) / sizeof((table)[0]),                       \
        .option_size = sizeof((table)[0]), .size = sizeof(type)                                    \
    }
#else
#define TENREC_PLUGIN_HEADER_OF(plugin_kind)                                                       \
    TENREC_PLUGIN_MAGIC, TENREC_ABI_MAJOR, TENREC_ABI_MINOR, sizeof(struct tenrec_plugin),         \
        (plugin_kind)

#define TENREC_PLUGIN_OPTIONS(table, type)                                                         \
    (table), sizeof(table) / sizeof((table)[0]), sizeof((table)[0]), sizeof(type)

#define TENREC_OPTION_RECORD(table, type)                                                          \
    {                                                                                              \
        (table), sizeof(table) / sizeof((table)[0]), sizeof((table)[0]), sizeof(type), 0           \
    }
#endif

#define TENREC_PLUGIN_HEADER TENREC_PLUGIN_HEADER_OF(TENREC_PLUGIN_BACKEND)

struct tenrec_init {
    uint32_t size;  /* sizeof(struct tenrec_init) */
    tenrec_peer me; /* TENREC_ANONYMOUS: no member, calls only */
    uint32_t world; /* number of members; 0 in a dynamic group */
    uint32_t reserved;
    uint64_t incarnation; /* of this worker; differs between two lives */
    const char *name;     /* of this worker; lives as long as the agent, as the next two */
    const char *backend;  /* name of this link in the config */
    const void *options;  /* yours */

    /* The address of this host for members on other hosts, "10.1.0.7" or "fd00::7", if the core
     * knows it. It is the default listen address of an agent. "": all members are on this host.
     * Borrowed during the call. */
    const char *host_address;

    /* The token of this life, as in struct tenrec_member; 0: none. */
    uint64_t token;
};

/* [PL-6] Check combinations of options. Open and start nothing, since `tenrec info` calls this
 * function too. `opts` is zeroed and then filled from the table. For a running agent it is a copy
 * of the agent's options with the changes. */
typedef tenrec_status tenrec_construct_options_fn(void *opts, tenrec_error *err);

/* [PL-7] Set self->ops and self->impl. self->host and self->inner are already set. After a failure
 * free all resources, since destroy is not called. */
typedef tenrec_status tenrec_init_agent_fn(const struct tenrec_init *in, struct tenrec_agent *self,
                                           tenrec_error *err);

/* A plugin that defines these with another signature does not compile. */
extern TENREC_EXPORT const struct tenrec_plugin tenrec_plugin;
extern TENREC_EXPORT tenrec_construct_options_fn tenrec_construct_options;
extern TENREC_EXPORT tenrec_init_agent_fn tenrec_init_agent;

#ifdef __cplusplus
}
#endif

#endif
