/* SPDX-License-Identifier: Apache-2.0 */
/* stores.h - the schemes of stores: of the kinds of this library, and of the plugins that a
 * configuration names, loaded and with their options filled. Opens nothing. */
#ifndef TENREC_STORE_STORES_H
#define TENREC_STORE_STORES_H

#include <tenrec/store_plugin.h>

struct chain_addition;
struct stores;
struct tenrec_config;

#define STORES_SCHEME_MAX 64

/* Copies "redis" of "redis://host/jobs". Returns false if the URL has no scheme for a plugin. */
bool stores_scheme(const char *url, char ret[STORES_SCHEME_MAX]);
/* The scheme of an init method if only a plugin knows it, in `buf`; else NULL. */
const char *stores_plugin_scheme(const char *init_method, char buf[STORES_SCHEME_MAX]);

/* Of a kind of this library; NULL: only a plugin may know the scheme. */
tenrec_init_store_fn *stores_own(const char *scheme);

/* Loads all stores that `stores:` names, and the plugin of `scheme` (NULL: none). The error of an
 * entry that is not needed is kept for stores_find.
 *
 * config   NULL: the plugin of that name, with its defaults; may be changed or dropped afterwards
 * ret      shares (counted); stores_drop
 * errors   with the position: ECONFIG (also of a plugin's construct), EPLUGIN, EABI, EEXIST, ENOMEM
 */
tenrec_status stores_load(const struct tenrec_config *config, const char *scheme,
                          struct stores **ret, tenrec_error *err);

/* Loads, fills and checks the same, and releases all. errors: as above, of the first wrong entry */
tenrec_status stores_check(const struct tenrec_config *config, const char *scheme,
                           tenrec_error *err);

struct stores *stores_share(struct stores *s);
void stores_drop(struct stores *s); /* NULL is fine */

/* The plugin for URLs that begin with "<scheme>://". Borrowed until the last stores_drop. */
struct stores_choice {
    const struct tenrec_plugin *plugin; /* NULL: a kind of this library */
    tenrec_init_store_fn *init;
    const void *options;
};

/* errors: ENOTFOUND (not configured), and the error of a failed loading */
tenrec_status stores_find(const struct stores *s, const char *scheme, struct stores_choice *ret,
                          tenrec_error *err);

/* The section `stores:` in the options of a chain, with the plugin that the init method needs. */
extern const struct chain_addition stores_addition;

#endif
