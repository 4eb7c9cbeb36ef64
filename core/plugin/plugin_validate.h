/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_validate.h - checks a plugin's description and the results of its functions. */
#ifndef TENREC_PLUGIN_PLUGIN_VALIDATE_H
#define TENREC_PLUGIN_PLUGIN_VALIDATE_H

#include <stdbool.h>
#include <tenrec/plugin.h>

#define PLUGIN_KIND_ANY 0 /* every known kind is accepted */

/* Checks `p` without calling the plugin; reads fields only after the fields that never
 * change. `wanted`: an enum tenrec_plugin_kind, or PLUGIN_KIND_ANY. errors: EPLUGIN,
 * EABI, each with the difference. */
tenrec_status plugin_validate_check(const struct tenrec_plugin *p, int wanted, tenrec_error *err);

/* Checks the kind. errors: EPLUGIN */
tenrec_status plugin_validate_check_kind(const struct tenrec_plugin *p, int wanted,
                                         tenrec_error *err);

/* Check the result of a plugin's function. Before the call plugin_validate_begin clears *err (may
 * be NULL), so that a plugin that fails without a text does not show an earlier one; after the call
 * plugin_validate_end gives such a failure a text, and turns an unknown status into EPLUGIN.
 * `function`: "init", "construct_options" */
void plugin_validate_begin(tenrec_error *err);
tenrec_status plugin_validate_end(tenrec_status st, const char *function, tenrec_error *err);

/* "a store", for error texts. */
const char *plugin_validate_kind_name(uint32_t kind);

/* Returns true for 1 to 63 of [a-z0-9_]. */
bool plugin_validate_name_ok(const char *name);

#endif
