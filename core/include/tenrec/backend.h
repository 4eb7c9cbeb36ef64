/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/backend.h - the backends of this process.
 *
 * A backend is registered when its plugin file is loaded, which the config
 * does by itself; a program that brings its own calls tenrec_register_backend
 * and names it in the config like any other. Handles and agents stay valid
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
 * plugin   borrows it and both functions until tenrec_unload_backend
 * errors   EEXIST (there is one of that name), EPLUGIN, EABI (the description
 *          is out of contract), EINVAL, ENOMEM
 * threads  any
 * source   torch.distributed.rpc.backend_registry.register_backend
 */
tenrec_status tenrec_register_backend(const struct tenrec_plugin *plugin,
                                      tenrec_construct_options_fn *construct,
                                      tenrec_init_agent_fn *init, tenrec_error *err);

/* Is there a backend of that name? Looks at no file.
 *
 * threads  any
 * source   torch.distributed.rpc.backend_registry.backend_registered
 */
bool tenrec_backend_registered(const char *name);

/* Loads the plugin file and registers it; a file that is loaded already is
 * loaded once only.
 *
 * name_or_path  as `plugin:` in the config: <name>.so is looked for in the
 *               folders of TENREC_PLUGIN_PATH, then among the installed ones
 * errors   EPLUGIN (not found, no plugin), EABI (of another ABI), EEXIST
 *          (another file or the program has one of that name), ENOMEM
 * threads  any
 */
tenrec_status tenrec_load_backend(const char *name_or_path, tenrec_error *err);

/* Takes a backend out again. Its file is unmapped when the plugin allows it,
 * and TENREC_DLCLOSE=0 is not set.
 *
 * errors   ENOTFOUND, EBUSY (agents use it; says how many)
 * threads  any
 */
tenrec_status tenrec_unload_backend(const char *name, tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include <tenrec/agent_user.h>

#endif
