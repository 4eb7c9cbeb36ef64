/* gate.h - does a plugin's description fit this core? */
#ifndef TENREC_BACKEND_GATE_H
#define TENREC_BACKEND_GATE_H

#include <stdbool.h>
#include <tenrec/plugin.h>

/* Reads `p` only as far as its fields that never change allow, and calls
 * nothing of the plugin. errors: EPLUGIN, EABI, each with what differs. */
tenrec_status gate_check(const struct tenrec_plugin *p, enum tenrec_plugin_kind wanted,
                         tenrec_error *err);

/* Only [a-z0-9_]+, at most 63 of them. */
bool gate_name_ok(const char *name);

#endif
