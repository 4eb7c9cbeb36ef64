/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_validate.h - does a plugin's description fit this core? */
#ifndef TENREC_BACKEND_PLUGIN_VALIDATE_H
#define TENREC_BACKEND_PLUGIN_VALIDATE_H

#include <stdbool.h>
#include <tenrec/plugin.h>

#define GATE_ANY 0 /* every kind that is known is wanted */

/* Reads `p` only as far as its fields that never change allow, and calls
 * nothing of the plugin. `wanted`: an enum tenrec_plugin_kind, or GATE_ANY.
 * errors: EPLUGIN, EABI, each with what differs. */
tenrec_status plugin_validate_check(const struct tenrec_plugin *p, int wanted, tenrec_error *err);

/* Is it of the kind that is wanted? errors: EPLUGIN */
tenrec_status plugin_validate_check_kind(const struct tenrec_plugin *p, int wanted,
                                         tenrec_error *err);

/* What a function of a plugin returned. Before the call plugin_validate_begin clears *err (may be
 * NULL), so that a plugin which fails without a word does not seem to say what another
 * one said; after the call plugin_validate_end gives such a failure a text, and EPLUGIN to what
 * is no status. `what`: "init", "construct_options" */
void plugin_validate_begin(tenrec_error *err);
tenrec_status plugin_validate_end(tenrec_status st, const char *what, tenrec_error *err);

/* "a store": for texts. */
const char *plugin_validate_kind_name(uint32_t kind);

/* Only [a-z0-9_]+, at most 63 of them. */
bool plugin_validate_name_ok(const char *name);

#endif
