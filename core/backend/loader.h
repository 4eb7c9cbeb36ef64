/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h - plugin files. The only place that knows dlopen. */
#ifndef TENREC_BACKEND_LOADER_H
#define TENREC_BACKEND_LOADER_H

#include <stdbool.h>
#include <tenrec/store_plugin.h>

/* A plugin file that passed the gate. */
struct loaded {
    void *handle; /* equal for the same file */
    char *path;   /* owned */
    const struct tenrec_plugin *plugin;
    tenrec_construct_options_fn *construct;
    tenrec_init_agent_fn *init;       /* of a backend; else NULL */
    tenrec_init_store_fn *init_store; /* of a store; else NULL */
};

/* A word with a '/' in it, or with ".so" at its end, is a path. */
bool loader_is_path(const char *name_or_path);

/* Where the plugin `name` lies: the first <name>.so in the folders of
 * TENREC_PLUGIN_PATH (colons between), then in the folder of the installed
 * plugins. The caller frees *ret. errors: EPLUGIN (says where it looked and
 * what of a like name is there), ENOMEM */
tenrec_status loader_find(const char *name, char **ret, tenrec_error *err);

/* Maps the file and lets it through the gate as a plugin of `kind`, or of any
 * kind for GATE_ANY; none of the plugin's functions is called. errors: EPLUGIN,
 * EABI, ENOMEM */
tenrec_status loader_open(const char *path, int kind, struct loaded *ret, tenrec_error *err);

/* Gives the file back. It is unmapped only when the plugin says that it may be
 * (TENREC_PLUGIN_UNLOADABLE) and TENREC_DLCLOSE=0 is not set, so that tools
 * can still name its frames. */
void loader_close(struct loaded *l);

/* Calls fn for each plugin file that loader_find could find, with its name
 * and path, in the order of the search. */
void loader_list(void (*fn)(void *arg, const char *name, const char *path), void *arg);

/* Calls fn for each folder of the search, in its order, until it returns true. */
void loader_folders(bool (*fn)(void *arg, const char *folder), void *arg);

#endif
