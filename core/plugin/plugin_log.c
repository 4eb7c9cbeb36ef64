/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"

#include "core/base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <tenrec/observer_plugin.h>
#include <tenrec/store_plugin.h>

/* What each kind of plugin is given begins alike. */
#define PART_AT offsetof(struct tenrec_agent, log_part)
_Static_assert(offsetof(struct tenrec_plugin_store, log_part) == PART_AT, "a store begins alike");
_Static_assert(offsetof(struct tenrec_observer, log_part) == PART_AT, "an observer begins alike");

bool plugin_log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self;
    return log_enabled(level);
}

void plugin_log(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    const char *part = *(const char *const *)(const void *)((const char *)self + PART_AT);
    va_list ap;

    va_start(ap, fmt);
    log_vline(level, part, fmt, ap);
    va_end(ap);
}
