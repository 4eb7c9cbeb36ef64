/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - what may stand in a configuration; for config only. */
#ifndef TENREC_CONFIG_SCHEMA_H
#define TENREC_CONFIG_SCHEMA_H

#include "yaml/node.h"

/* Is it a key of the configuration itself, as `worker` and `backends` are? */
bool schema_is_top(const char *key);

/* Are the keys known and of the right kind (map, list, text)? Options are left
 * to whoever has the plugin's table. errors: ECONFIG with the place */
tenrec_status schema_check_shape(const struct node *root, tenrec_error *err);

/* Does each name that is used exist: `backend`, `wraps`; and does no chain
 * bite its own tail? `file` stands for the file where nothing better is known.
 * errors: ECONFIG with the place */
tenrec_status schema_check_names(const struct node *root, const char *file, tenrec_error *err);

#endif
