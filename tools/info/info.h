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

/* info_find loads the plugins of the plugin folders, and adds the unusable to
 * "unusable"; info_list adds all that are loaded to "backends" and "stores". */
void info_find(struct json_t *all);
void info_list(struct json_t *all);

void info_print(const struct json_t *all);

#endif
