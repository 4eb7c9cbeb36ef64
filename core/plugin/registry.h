/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - the backends and store plugins that this process knows.
 *
 * A backend is a plugin's description and its two functions, from a file or from the
 * program itself. A plugin of the kind `store` or `observer` is also a struct backend here: a name
 * belongs to one plugin of any kind. */
#ifndef TENREC_PLUGIN_REGISTRY_H
#define TENREC_PLUGIN_REGISTRY_H

#include "core/plugin/loader.h"

struct backend;

/* Gets a backend: a registered one of that name, else the plugin file (searched as
 * loader.h says), which is registered then. Shares it: backend_put releases it. Any
 * thread.
 * errors: EPLUGIN (not found, not loadable), EABI, EEXIST (another file has a
 * plugin of that name), ENOMEM */
tenrec_status backend_get(const char *name_or_path, struct backend **ret, tenrec_error *err);

/* The same for a plugin of another kind, or of any kind for PLUGIN_KIND_ANY.
 * errors: also EPLUGIN when the plugin of that name is of another kind */
tenrec_status backend_get_kind(const char *name_or_path, int kind, struct backend **ret,
                               tenrec_error *err);
void backend_share(struct backend *b);
void backend_put(struct backend *b);

/* Keeps the plugin mapped for ever: a caller uses functions of it. */
void backend_keep(struct backend *b);

/* Borrowed until backend_put. */
const struct tenrec_plugin *backend_plugin(const struct backend *b);
/* The plugin's file; "" when the program registered the plugin. */
const char *backend_path(const struct backend *b);
/* The plugin's functions. */
const struct loaded *backend_file(const struct backend *b);

/* Calls fn for each registered plugin of `kind`, in the order of registration;
 * the handle is borrowed during the call. */
void backend_each(enum tenrec_plugin_kind kind, void (*fn)(void *arg, struct backend *b),
                  void *arg);

#endif
