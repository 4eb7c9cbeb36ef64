/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_entry.h - an entry of `backends:`, `stores:` or `observers:` with its plugin. */
#ifndef TENREC_PLUGIN_PLUGIN_ENTRY_H
#define TENREC_PLUGIN_PLUGIN_ENTRY_H

#include <tenrec/error.h>
#include <tenrec/types.h>

struct backend;
struct config_layer;

/* Loads the plugin of the entry, fills its options, and lets it check them. Starts nothing.
 *
 * ret, ret_options   NULL before; the caller releases both (backend_put, options_drop), also what a
 *                    failure has left
 * errors             with the position: ECONFIG (also from a plugin's construct), EPLUGIN, EABI,
 *                    EEXIST, ENOMEM
 */
tenrec_status plugin_entry_load(const struct config_layer *from, struct backend **ret,
                                void **ret_options, tenrec_error *err);

/* Which builds of the library and of its plugins this process runs. */

/* The first words of the keys. */
#define PLUGIN_IDENTITY_LIBRARY "library."
#define PLUGIN_IDENTITY_PLUGIN "plugin."

/* Pushes "library.version", "library.path" and "library.build_id", and "plugin.NAME.version" and so
 * on for each registered plugin. A path is "" of the program itself and of
 * plugins that it registered, a build id if the file has none. */
void plugin_identity_list(tenrec_sink_fn *sink, void *arg);

#endif
