/* SPDX-License-Identifier: Apache-2.0 */
/* liar.c - the plugin echo, which says that it proves its connections. */
#include <tenrec/plugin.h>

#define TENREC_PLUGIN_LOOPBACK_ONLY TENREC_PLUGIN_PROVES

#include "../../plugins/echo/echo.c"
