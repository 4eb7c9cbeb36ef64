/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h - plugin files. The only user of dlopen. */
#ifndef TENREC_PLUGIN_LOADER_H
#define TENREC_PLUGIN_LOADER_H

#include <stdbool.h>
#include <tenrec/observer_plugin.h>
#include <tenrec/store_plugin.h>

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

/* Returns true for a word with a '/' in it or ".so" at its end. */
bool loader_is_path(const char *name_or_path);

/* Finds the file of plugin `name`: the first <name>.so in the folders of
 * plugin_folders_each. The caller frees *ret. errors: EPLUGIN (names the searched folders and a
 * plugin of a similar name), ENOMEM */
tenrec_status loader_find(const char *name, char **ret, tenrec_error *err);

/* Maps the file and checks it as a plugin of `kind`, or of any kind for
 * PLUGIN_KIND_ANY; none of the plugin's functions is called. A setuid or setgid program maps only
 * plugins with the flag TENREC_PLUGIN_SETUID. errors: EPLUGIN, EABI, ENOMEM */
tenrec_status loader_open(const char *path, int kind, struct loaded *ret, tenrec_error *err);

/* Releases the file. It is unmapped only if the plugin allows that
 * (TENREC_PLUGIN_UNLOADABLE) and TENREC_DLCLOSE=0, with which tools can still name
 * its frames, is not set. */
void loader_close(struct loaded *l);

/* Calls fn for each plugin file that loader_find could find, with its name
 * and path, in the order of the search. */
void loader_list(void (*fn)(void *arg, const char *name, const char *path), void *arg);

#endif
