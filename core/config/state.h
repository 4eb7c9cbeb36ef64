/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the struct of a configuration; for the files of config, and for `tenrec check`, which
 * leaves out what is wrong. */
#ifndef TENREC_CONFIG_STATE_H
#define TENREC_CONFIG_STATE_H

#include <stddef.h>
#include <tenrec/config.h>

#include "core/config/config.h"
#include "core/config/environment.h"
#include "core/config/node.h"

struct tenrec_config {
    char *name;             /* of the file; positions in `root` borrow it */
    struct node *root;      /* default, file and code, merged; a map */
    struct environment env; /* applied when a value is read and its type is known */
};

/* The text of config/default.yaml, embedded by the build. */

extern const char builtin_yaml[]; /* ends with a NUL */
extern const size_t builtin_yaml_len;

/* Paths in a configuration, relative to the file that names them. */

/* Makes each `plugin: ./x.so` and each file of `security:` in the tree, read from the file at
 * `path`, relative to the folder of that file; names of plugins and absolute paths stay.
 * errors: ENOMEM */
tenrec_status file_paths_resolve(struct node *root, const char *path, tenrec_error *err);

/* The TENREC_ variables that something reads; for config only. */

/* Warns of each variable of the configuration that nothing reads, with the nearest name. */
void known_variables_warn(const struct tenrec_config *config);

/* The keys of a configuration and the names in it, checked; for config only. */

/* Returns true for a top-level key, such as `worker` and `backends`. */
bool schema_is_top(const char *key);

/* Checks that the keys are known and their values of the right kind (map, list, text).
 * Options are checked with the plugin's table. errors: ECONFIG with the position */
tenrec_status schema_check_shape(const struct node *root, tenrec_error *err);

/* Checks that the names in `backend` and `wraps` exist and that no chain has a cycle.
 * `file` names the file in an error about a missing key. errors: ECONFIG with the position */
tenrec_status schema_check_names(const struct node *root, const char *file, tenrec_error *err);

#endif
