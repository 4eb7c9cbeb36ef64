/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/log.h - messages of the library for people.
 *
 * error: an operator must act; warn: degraded, but running; info: once per life of an object;
 * debug: per object; trace: per message. An idle process logs nothing. The level is `warn`
 * unless TENREC_LOG sets another.
 *
 * Control characters and bytes that are no UTF-8 are escaped (\n, \xHH). Lines of warn and error
 * are limited for each reason to a burst of 10 and one more each second; the suppressed lines
 * are counted, and the count is logged. Lines for a reader of stderr or TENREC_LOG_FILE that
 * does not keep up are dropped and counted: no thread waits.
 */
#ifndef TENREC_LOG_H
#define TENREC_LOG_H

#include <stdbool.h>
#include <tenrec/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Receives one line. `part` ("config", "worker0/tensorpipe") and `text` (no line
 * end) are borrowed during the call. Called from any thread, several at once, including threads
 * that serve connections: must not block. */
typedef void tenrec_log_fn(void *arg, enum tenrec_log_level level, const char *part,
                           const char *text);

/* Sends lines to `fn` instead of stderr; NULL restores stderr.
 *
 * threads  any; the former function may still receive lines under way
 */
void tenrec_log_set_callback(tenrec_log_fn *fn, void *arg);

/* Lines above this level are not produced. Overrides TENREC_LOG. Returns the former level. */
enum tenrec_log_level tenrec_log_set_level(enum tenrec_log_level level);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
