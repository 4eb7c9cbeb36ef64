/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - the parts of `tenrec info`. */
#ifndef TENREC_TOOLS_INFO_H
#define TENREC_TOOLS_INFO_H

#include "core/config/config.h"

struct json_t;

/* Tables of options as lists; new references. */
struct json_t *info_options(const struct tenrec_plugin *table);
struct json_t *info_worker_options(void);
struct json_t *info_observe_options(void);
struct json_t *info_security_options(void);

/* What the command line names: parts of the output, by the name of a plugin, its path, or "worker",
 * "security" or "observe". */
struct info_names {
    char **v;
    size_t n; /* 0: all */
};

/* info_find loads the plugins of the plugin folders, or those that are named, and adds the unusable
 * to "unusable"; info_list adds all that are loaded to "backends", "stores" and "observers". */
void info_find(struct json_t *all, const struct info_names *names);
void info_list(struct json_t *all);

/* Leaves what is named. errors: ENOTFOUND, and EPLUGIN for a plugin that cannot be used */
tenrec_status info_choose(struct json_t *all, const struct info_names *names, tenrec_error *err);

void info_print(const struct json_t *all);

#endif
