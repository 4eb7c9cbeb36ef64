/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/backend.h - the backends of this process.
 *
 * Loading a plugin file, which the config does when needed, registers its backend; a program
 * with a backend of its own calls tenrec_register_backend and names it in the config like any
 * other. Handles and agents stay valid
 * while others register.
 */
#ifndef TENREC_BACKEND_H
#define TENREC_BACKEND_H

#include <stdbool.h>
#include <tenrec/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Adds a backend under plugin->name.
 *
 * plugin   borrows it and both functions until tenrec_plugin_unload
 * errors   EEXIST (the name exists already), EPLUGIN, EABI (the description
 *          is out of contract), EINVAL, ENOMEM
 * threads  any
 * source   torch.distributed.rpc.backend_registry.register_backend
 */
tenrec_status tenrec_register_backend(const struct tenrec_plugin *plugin,
                                      tenrec_construct_options_fn *construct,
                                      tenrec_init_agent_fn *init, tenrec_error *err);

/* Returns true if a backend of that name is registered. Reads no file.
 *
 * threads  any
 * source   torch.distributed.rpc.backend_registry.backend_registered
 */
bool tenrec_backend_registered(const char *name);

/* Loads the plugin file and registers its backend; a file is loaded once only.
 *
 * name_or_path  as `plugin:` in the config: <name>.so is searched in the folders of
 *               TENREC_PLUGIN_PATH, then among the installed plugins
 * errors   EPLUGIN (not found, not a plugin), EABI (of another ABI), EEXIST (another file or the
 *          program has registered that name), ENOMEM
 * threads  any
 */
tenrec_status tenrec_plugin_load(const char *name_or_path, tenrec_error *err);

/* Unregisters a backend. Its file is unmapped if the plugin allows it and TENREC_DLCLOSE=0 is
 * not set.
 *
 * errors   ENOTFOUND, EBUSY (in use; names the number of users)
 * threads  any
 */
tenrec_status tenrec_plugin_unload(const char *name, tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include <tenrec/chain.h>

#endif
