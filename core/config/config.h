/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - a configuration as the other parts of the core see it.
 *
 * Layers: node (a value with its position) <- tree (YAML), quantity (units) <-
 * value (one typed value) <- options (a plugin's table) <- config. */
#ifndef TENREC_CONFIG_CONFIG_H
#define TENREC_CONFIG_CONFIG_H

#include "core/config/node.h"

#include <stdbool.h>
#include <tenrec/config.h>
#include <tenrec/device.h>
#include <tenrec/error.h>
#include <tenrec/plugin.h>

/* The sections of a configuration whose entries name a plugin. */

enum config_section { SECTION_BACKENDS, SECTION_STORES, SECTION_OBSERVERS };

/* "backends": the key in the file. */
static inline const char *section_key(enum config_section s)
{
    static const char *const key[] = { "backends", "stores", "observers" };

    return key[s];
}

/* "backend": the word for an entry. */
static inline const char *section_word(enum config_section s)
{
    static const char *const word[] = { "backend", "store", "observer" };

    return word[s];
}

/* What a configuration says. */

/* What happens at a mistake of a configuration. */
struct config_mistakes {
    /* Leaves out of `root`, the tree as it was written, or of the variables, what is wrong. Returns
     * false to end at this mistake. */
    bool (*leave_out)(void *arg, struct tenrec_config *config, struct node *root,
                      const tenrec_error *err);
    void *arg;
};

/* tenrec_config_load, and tenrec_config_parse, that go on behind a mistake as `m` says.
 *
 * errors   of a file that cannot be read, or is no YAML; and a mistake that cannot be left out */
tenrec_status config_load_all(const char *path, const struct config_mistakes *m,
                              struct tenrec_config **ret, tenrec_error *err);
tenrec_status config_parse_all(const char *text, const char *name, const struct config_mistakes *m,
                               struct tenrec_config **ret, tenrec_error *err);

/* An entry of `backends:` or `stores:` with its environment. All texts are borrowed
 * from the configuration, until it is changed or dropped. */
struct config_layer {
    const struct tenrec_config *config; /* has the variables; NULL: no variables */
    enum config_section section;
    const char *name;      /* the entry's */
    const char *plugin;    /* name or path */
    const char *wraps;     /* the next inner entry; NULL at the wire */
    struct position where; /* of the entry */
    struct position plugin_where;
    struct position wraps_where; /* of `wraps`, or of the entry when there is none */
    const struct node *options;  /* a map; NULL when none are written */
    bool innermost;              /* the target of TENREC_TRANSPORTS and the like */
};

/* The chain that `backend:` begins, outermost first.
 *
 * ret      `*ret_n` layers, at least one; free() them
 * errors   ECONFIG with the position, ENOMEM
 */
tenrec_status config_layers(const struct tenrec_config *config, struct config_layer **ret,
                            size_t *ret_n, tenrec_error *err);

/* Every entry of `backends:`, in the chain or not, or of `stores:` or `observers:`, of which there
 * may be none; in file order. As above. */
tenrec_status config_entries(const struct tenrec_config *config, enum config_section section,
                             struct config_layer **ret, size_t *ret_n, tenrec_error *err);

/* The entry of `stores:` for URLs that begin with "<scheme>://"; without an entry, the
 * plugin of that name with its defaults. `scheme` is borrowed as the texts are. */
struct config_layer config_store(const struct tenrec_config *config, const char *scheme);

/* The entry of `observers:` of that name; without an entry, the plugin of that name with its
 * defaults, which `where` names. */
struct config_layer config_observer(const struct tenrec_config *config, const char *name,
                                    const struct position *where);

/* Schemes of stores and of init_method that need no plugin. */
enum config_scheme { CONFIG_TCP, CONFIG_FILE, CONFIG_MEMORY, CONFIG_ENV, CONFIG_OTHER };
enum config_scheme config_scheme_find(const char *scheme);

struct config_device_map {
    const char *worker;                    /* the callee's name */
    const struct tenrec_device_pair *pair; /* of the caller's devices and the callee's */
    size_t n;
};

/* The values of `worker:`, and init_method. Owns all texts and arrays in it. */
struct config_settings {
    const char *name; /* "{rank}" in it is to be replaced */
    const char *group;
    const char *group_protocol; /* "tenrec" or "torch" */
    const char *trace;          /* file, "{rank}" in it likewise; "": none */
    int64_t num_worker_threads;
    int64_t max_queued_calls;
    uint64_t max_served_bytes;
    uint64_t rpc_timeout_ms;  /* TENREC_FOREVER: none */
    uint64_t stuck_after_ms;  /* TENREC_FOREVER: never */
    uint64_t init_timeout_ms; /* of joining the group; TENREC_FOREVER: none */
    uint64_t rref_retry_gap_ms;
    uint64_t receive_pool_bytes;
    uint64_t heartbeat_ms; /* of dynamic groups, as the two below */
    int64_t heartbeat_misses;
    uint64_t group_lease_ms;
    int64_t rank;       /* -1: from the launcher */
    int64_t world_size; /* -1: from the launcher */
    const struct tenrec_device *device;
    size_t n_devices;
    const struct config_device_map *device_map;
    size_t n_device_maps;
    const char *init_method;
    const char *init_method_where; /* "cluster.yaml:2:14", to begin an error with */
    struct tenrec_option_list device_names;
};

/* errors: ECONFIG with the position, ENOMEM */
tenrec_status config_settings_make(const struct tenrec_config *config, struct config_settings **ret,
                                   tenrec_error *err);
void config_settings_drop(struct config_settings *settings); /* NULL is fine */

/* Gets one effective value; the texts are borrowed during the call. `source` is
 * "cluster.yaml:4:10", "environment TENREC_BACKEND", "code" or "default". */
typedef void config_show_fn(void *arg, const char *key, const char *value, const char *source);

/* Calls `fn` for each effective value that needs no plugin: "worker.*", "security.*",
 * "observe.*", "init_method", "backend". Passwords in URLs read "***". errors: ENOMEM */
tenrec_status config_show(const struct tenrec_config *config, config_show_fn *fn, void *arg,
                          tenrec_error *err);

/* The same for one entry: "backends.NAME.plugin", ".wraps", ".options.*", or
 * "stores.NAME..." likewise.
 * Secrets read "***". errors: as options_make */
tenrec_status options_show(const struct tenrec_plugin *desc, const struct config_layer *layer,
                           config_show_fn *fn, void *arg, tenrec_error *err);

/* Makes the options struct that `desc` describes: the defaults of its table,
 * then the layer's options and the environment.
 *
 * desc     of a plugin that passed plugin_validate_check, older or newer: read with its own
 *          option_size
 * layer    NULL for the defaults alone
 * ret      options_size bytes, aligned for any type; options_drop it
 * errors   ECONFIG with the position; EPLUGIN when a default does not parse; ENOMEM
 */
tenrec_status options_make(const struct tenrec_plugin *desc, const struct config_layer *layer,
                           void **ret, tenrec_error *err);

/* The sources of an entry's values, for an error about no single value: "F:3:3",
 * "environment A, B" when only variables set options, "F:3:3 with environment A" when
 * both do. Returns `buf`. */
const char *options_where(const struct tenrec_plugin *desc, const struct config_layer *layer,
                          char buf[POSITION_TEXT_MAX]);

/* Frees the struct and all memory of the core in it. NULL is fine. */
void options_drop(void *opts);

/* Option `i` of the table as this core knows it: fields that an older plugin lacks are
 * zero. */
struct tenrec_option options_at(const struct tenrec_plugin *desc, uint32_t i);

/* "[uv, shm]", "60s": the option's value in `opts`, as a user would write it; "***" for
 * a secret, and for the password in a URL.
 *
 * ret      freed by the caller; NULL: out of memory
 */
char *options_print(const struct tenrec_option *opt, const void *opts);

/* "boolean", "list of strings": the type for messages. Returns `buf`. */
#define OPTIONS_TYPE_MAX 48
const char *options_type(const struct tenrec_option *opt, char buf[OPTIONS_TYPE_MAX]);

/* Passwords in URLs, masked before a text is printed. A text is masked as a whole
 * and before it is cut: a password may hold blanks, quotes, commas, and be long. */

/* Returns a copy of a URL, or of a text with URLs, with "***" for each possible password
 * ("redis://me:***@host"), also in a mistyped URL ("redis:me:pw@host", "redis://me:pw");
 * the caller frees the copy. NULL: out of memory. */
char *secret_mask(const char *text);

/* Returns true if secret_mask would change the text. */
bool secret_is_in(const char *text);

/* Puts "***" where `err` repeats the password of `url`. */
void secret_scrub(tenrec_error *err, const char *url);

#endif
