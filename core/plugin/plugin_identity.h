/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_identity.h - which builds of the library and of its plugins this process runs. */
#ifndef TENREC_PLUGIN_PLUGIN_IDENTITY_H
#define TENREC_PLUGIN_PLUGIN_IDENTITY_H

#include <tenrec/types.h>

/* The first words of the keys. */
#define PLUGIN_IDENTITY_LIBRARY "library."
#define PLUGIN_IDENTITY_PLUGIN "plugin."

/* Pushes "library.version", "library.path" and "library.build_id", and "plugin.NAME.version" and so
 * on for each registered plugin. A path is "" of the program itself and of
 * plugins that it registered, a build id if the file has none. */
void plugin_identity_list(tenrec_sink_fn *sink, void *arg);

#endif
