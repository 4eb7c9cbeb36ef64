/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - lines from inside the core. */
#ifndef TENREC_BASE_LOG_H
#define TENREC_BASE_LOG_H

#include <tenrec/error.h>
#include <tenrec/log.h>

bool log_enabled(enum tenrec_log_level level);
TENREC_PRINTF(3, 4)
void log_line(enum tenrec_log_level level, const char *part, const char *fmt, ...);
TENREC_PRINTF(3, 0)
void log_vline(enum tenrec_log_level level, const char *part, const char *fmt, va_list ap);
/* Finds the level of a name. */
#define LOG_LEVELS "error, warn, info, debug or trace"
bool log_level_find(const char *name, enum tenrec_log_level *ret);
/* Prints the pending counts of lines that were left out. */
void log_flush(void);

#endif
