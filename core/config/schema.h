/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - the keys of a configuration and the names in it, checked; for config only. */
#ifndef TENREC_CONFIG_SCHEMA_H
#define TENREC_CONFIG_SCHEMA_H

#include "core/config/node.h"

/* Returns true for a top-level key, such as `worker` and `backends`. */
bool schema_is_top(const char *key);

/* Checks that the keys are known and their values of the right kind (map, list, text).
 * Options are checked with the plugin's table. errors: ECONFIG with the place */
tenrec_status schema_check_shape(const struct node *root, tenrec_error *err);

/* Checks that the names in `backend` and `wraps` exist and that no chain has a cycle.
 * `file` names the file in an error about a missing key. errors: ECONFIG with the place */
tenrec_status schema_check_names(const struct node *root, const char *file, tenrec_error *err);

#endif
