/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_log.h - the log of plugins of all kinds: TENREC_PLUGIN_HOST. */
#ifndef TENREC_PLUGIN_PLUGIN_LOG_H
#define TENREC_PLUGIN_PLUGIN_LOG_H

#include <tenrec/agent.h>

bool plugin_log_enabled(const void *self, enum tenrec_log_level level);
TENREC_PRINTF(3, 4)
void plugin_log(const void *self, enum tenrec_log_level level, const char *fmt, ...);

#endif
