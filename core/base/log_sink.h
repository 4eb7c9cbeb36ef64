/* SPDX-License-Identifier: Apache-2.0 */
/* log_sink.h - writes lines to a descriptor, and never waits for its reader.
 *
 * Loop threads log. A full pipe, a stopped terminal or a socket whose peer does not
 * read loses lines; the sink counts these and logs the count when there is room again.
 * O_NONBLOCK is not set on an inherited descriptor: all processes that share the open
 * file share the flag. */
#ifndef TENREC_BASE_LOG_SINK_H
#define TENREC_BASE_LOG_SINK_H

#include <stddef.h>

/* Writes one line (with its line end, at most PIPE_BUF bytes) to `fd`; any
 * thread, several at once. */
void log_sink_write(int fd, const char *line, size_t len);

#endif
