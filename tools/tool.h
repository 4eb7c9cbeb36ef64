/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - what the sub-commands of `tenrec` share. */
#ifndef TENREC_TOOLS_TOOL_H
#define TENREC_TOOLS_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

/* A sub-command: its place in `tenrec help`, and its main function, which gets
 * its own name as argv[0]. */
struct tool {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *help;    /* what `tenrec help NAME` prints below the usage */
    int (*main)(const struct tool *self, int argc, char **argv);
};

extern const struct tool tool_check, tool_info, tool_perf, tool_ping, tool_run;

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1, /* what was asked for went wrong */
    TOOL_MISUSED = 2 /* the command line makes no sense */
};

/* One line on stderr, "tenrec NAME: text". Returns TOOL_FAILED. */
TENREC_PRINTF(2, 3)
int tool_fail(const struct tool *self, const char *fmt, ...);

/* The same with "; see 'tenrec help NAME'". Returns TOOL_MISUSED. */
TENREC_PRINTF(2, 3)
int tool_misuse(const struct tool *self, const char *fmt, ...);

struct option;

/* What getopt_long just refused (it returned '?' or ':') of those that it knew. */
int tool_bad_option(const struct tool *self, int got, char **argv, const struct option *known);

void tool_print_help(const struct tool *self);

/* Reads a decimal number from `min` to `max`; false when `text` is none. */
bool tool_number(const char *text, int64_t min, int64_t max, int64_t *ret);

/* The absolute path of an existing, readable file; false (with errno) when it
 * is none. ret is free()d by the caller. */
bool tool_readable(const char *path, char **ret);

#endif
