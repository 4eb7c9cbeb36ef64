/* SPDX-License-Identifier: Apache-2.0 */
/* file_path.h - paths in a configuration, relative to the file that names them. */
#ifndef TENREC_CONFIG_FILE_PATH_H
#define TENREC_CONFIG_FILE_PATH_H

#include "core/config/node.h"

/* Makes each `plugin: ./x.so` and each file of `security:` in the tree, read from the file at
 * `path`, relative to the folder of that file; names of plugins and absolute paths stay.
 * errors: ENOMEM */
tenrec_status file_paths_resolve(struct node *root, const char *path, tenrec_error *err);

#endif
