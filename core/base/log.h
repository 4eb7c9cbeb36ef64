/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - lines from inside the core, and the limit on those that one reason prints. */
#ifndef TENREC_BASE_LOG_H
#define TENREC_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* A limit on the lines that one reason prints; for log.c.
 *
 * A peer that causes a warning can cause it without end. A reason (the place in
 * the code, and the part that logs) prints LOG_LIMIT_BURST lines at once and
 * one more each second; lines beyond that are counted, and the count is printed
 * with the next line of the reason, or on its own when it has waited a second. */

#define LOG_LIMIT_BURST 10
#define LOG_LIMIT_REASONS 64

/* A line, ready to be printed. */
struct log_record {
    enum tenrec_log_level level;
    char part[160];
    char text[1024];
    uint64_t left_out; /* lines like it that were not printed since the last one */
};

struct log_reason {
    const void *format; /* the format string; NULL: free */
    uint32_t tokens;
    uint64_t filled_ns; /* when `tokens` was last updated */
    struct log_record last;
};

/* Zeroed at first. The caller holds a lock. */
struct log_limit {
    struct log_reason reason[LOG_LIMIT_REASONS];
};

/* Returns true if `line` may be printed, and puts the number of lines that were left
 * out before it into line->left_out. */
bool log_limit_admit(struct log_limit *l, const void *format, struct log_record *line,
                     uint64_t now_ns);

/* Moves a count that is pending for a second (`all`: any) into *ret, with the line
 * that was left out last. Returns false when no count is pending. */
bool log_limit_take(struct log_limit *l, bool all, uint64_t now_ns, struct log_record *ret);

/* Writes lines to a descriptor, and never waits for its reader.
 *
 * Loop threads log. A full pipe, a stopped terminal or a socket whose peer does not
 * read loses lines; the sink counts these and logs the count when there is room again.
 * O_NONBLOCK is not set on an inherited descriptor: all processes that share the open
 * file share the flag. */

/* Writes one line (with its line end, at most PIPE_BUF bytes) to `fd`; any
 * thread, several at once. */
void log_sink_write(int fd, const char *line, size_t len);

#endif
