/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h - the plugins that this process knows, of all kinds: got by name, loaded with their
 * options, and checked; for the rooms above.
 *
 * A struct plugin is a description and its functions, from a file or from the program itself. A
 * name belongs to one plugin of any kind. Any thread. */
#ifndef TENREC_PLUGIN_PLUGIN_H
#define TENREC_PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>
#include <tenrec/plugin.h>
#include <tenrec/store_plugin.h>
#include <tenrec/types.h>

struct plugin;
struct config_layer;

/* A plugin file that passed plugin_validate_check. */
struct loaded {
    void *handle; /* equal for the same file */
    char *path;   /* owned */
    const struct tenrec_plugin *plugin;
    tenrec_construct_options_fn *construct;
    tenrec_init_agent_fn *init;             /* of a backend; else NULL */
    tenrec_init_store_fn *init_store;       /* of a store; else NULL */
    tenrec_init_observer_fn *init_observer; /* of an observer; else NULL */
};

/* Checks of a plugin's description and of the results of its functions. */

#define PLUGIN_KIND_ANY 0 /* every known kind is accepted */

/* Checks `p` without calling the plugin; reads fields only after the fields that never
 * change. `wanted`: an enum tenrec_plugin_kind, or PLUGIN_KIND_ANY. errors: EPLUGIN,
 * EABI, each with the difference. */
tenrec_status plugin_validate_check(const struct tenrec_plugin *p, int wanted, tenrec_error *err);

/* Checks the kind. errors: EPLUGIN */
tenrec_status plugin_validate_check_kind(const struct tenrec_plugin *p, int wanted,
                                         tenrec_error *err);

/* Check the result of a plugin's function. Before the call plugin_validate_begin clears *err (may
 * be NULL), so that a plugin that fails without a text does not show an earlier one; after the call
 * plugin_validate_end gives such a failure a text, and turns an unknown status into EPLUGIN.
 * `function`: "init", "construct_options" */
void plugin_validate_begin(tenrec_error *err);
tenrec_status plugin_validate_end(tenrec_status st, const char *function, tenrec_error *err);

/* Asks a store or an observer whether it would open `address`; a plugin that cannot say accepts
 * all. */
tenrec_status plugin_check_address(const struct tenrec_plugin *p, const void *options,
                                   const char *address, tenrec_error *err);

/* Returns true for 1 to 63 of [a-z0-9_]. */
bool plugin_validate_name_ok(const char *name);

/* Plugins by name. */

/* Gets a backend: a registered one of that name, else the plugin file (searched as
 * loader_find says), which is registered then. Shares it: plugin_put releases it.
 * errors: EPLUGIN (not found, not loadable), EABI, EEXIST (another file has a
 * plugin of that name), ENOMEM */
tenrec_status plugin_get(const char *name_or_path, struct plugin **ret, tenrec_error *err);

/* The same for a plugin of another kind, or of any kind for PLUGIN_KIND_ANY.
 * errors: also EPLUGIN when the plugin of that name is of another kind */
tenrec_status plugin_get_kind(const char *name_or_path, int kind, struct plugin **ret,
                              tenrec_error *err);
void plugin_share(struct plugin *b);
void plugin_put(struct plugin *b);

/* Keeps the plugin mapped for ever: a caller uses functions of it. */
void plugin_keep(struct plugin *b);

/* Borrowed until plugin_put. */
const struct tenrec_plugin *plugin_description(const struct plugin *b);
/* The plugin's file; "" when the program registered the plugin. */
const char *plugin_path(const struct plugin *b);
/* The plugin's functions. */
const struct loaded *plugin_loaded(const struct plugin *b);

/* Calls fn for each registered plugin of `kind`, in the order of registration;
 * the handle is borrowed during the call. */
void plugin_each(enum tenrec_plugin_kind kind, void (*fn)(void *arg, struct plugin *b), void *arg);

/* Entries of `backends:`, `stores:` and `observers:` with their plugins. */

/* Loads the plugin of the entry, fills its options, and lets it check them. Starts nothing.
 *
 * ret, ret_options   NULL before; the caller releases both (plugin_put, options_drop), also what a
 *                    failure has left
 * errors             with the position: ECONFIG (also from a plugin's construct), EPLUGIN, EABI,
 *                    EEXIST, ENOMEM
 */
tenrec_status plugin_entry_load(const struct config_layer *from, struct plugin **ret,
                                void **ret_options, tenrec_error *err);

/* Which builds of the library and of its plugins this process runs. */

/* The first words of the keys. */
#define PLUGIN_IDENTITY_LIBRARY "library."
#define PLUGIN_IDENTITY_PLUGIN "plugin."

/* Pushes "library.version", "library.path" and "library.build_id", and "plugin.NAME.version" and so
 * on for each registered plugin. A path is "" of the program itself and of
 * plugins that it registered, a build id if the file has none. */
void plugin_identity_list(tenrec_sink_fn *sink, void *arg);

/* The log of plugins of all kinds: TENREC_PLUGIN_HOST. */

bool plugin_log_enabled(const void *self, enum tenrec_log_level level);
TENREC_PRINTF(3, 4)
void plugin_log(const void *self, enum tenrec_log_level level, const char *fmt, ...);

#endif
