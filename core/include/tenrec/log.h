/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/log.h - what Tenrec says about itself.
 *
 * error: you must act; warn: we go on, worse; info: once per life of an
 * object; debug: per object; trace: per message. Nothing is printed at rest,
 * and nothing below the level, which is `warn` unless TENREC_LOG says else.
 *
 * Control characters and bytes that are no UTF-8 are escaped (\n, \xHH). Of
 * warn and error each reason prints 10 lines at once and one more each second; the rest
 * are counted, and the count is told. A reader of stderr or of TENREC_LOG_FILE
 * that does not keep up loses lines, and is told how many: no thread waits.
 */
#ifndef TENREC_LOG_H
#define TENREC_LOG_H

#include <stdbool.h>
#include <tenrec/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Takes one line. `part` ("config", "worker0/tensorpipe") and `text` (no line
 * end) are borrowed during the call. Called from any thread, several at once,
 * those that serve connections among them: it may not wait. */
typedef void tenrec_log_fn(void *arg, enum tenrec_log_level level, const char *part,
                           const char *text);

/* Sends lines to `fn` instead of stderr; NULL goes back to stderr.
 *
 * threads  any; lines already under way may still reach the former function
 */
void tenrec_set_log_callback(tenrec_log_fn *fn, void *arg);

/* Lines above this level are not made. Overrides TENREC_LOG. */
void tenrec_set_log_level(enum tenrec_log_level level);
enum tenrec_log_level tenrec_get_log_level(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
