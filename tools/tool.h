/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - functions that the sub-commands of `tenrec` share. */
#ifndef TENREC_TOOLS_TOOL_H
#define TENREC_TOOLS_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

/* A sub-command; main gets the name as argv[0]. */
struct tool {
    const char *name;
    const char *usage;   /* arguments after the name */
    const char *summary; /* one line */
    const char *help;    /* text of `tenrec help NAME` below the usage */
    int (*main)(const struct tool *self, int argc, char **argv);
};

extern const struct tool tool_check, tool_info, tool_perf, tool_ping, tool_run;

enum {
    TOOL_OK = 0,
    TOOL_FAILED = 1, /* the command failed */
    TOOL_MISUSED = 2 /* the command line is invalid */
};

/* Prints "tenrec NAME: text" on stderr. Returns TOOL_FAILED. */
TENREC_PRINTF(2, 3)
int tool_fail(const struct tool *self, const char *fmt, ...);

/* The same with "; see 'tenrec help NAME'". Returns TOOL_MISUSED. */
TENREC_PRINTF(2, 3)
int tool_misuse(const struct tool *self, const char *fmt, ...);

struct option;

/* Reports an option that getopt_long refused with `got`, '?' or ':'. Returns
 * TOOL_MISUSED. */
int tool_bad_option(const struct tool *self, int got, char **argv, const struct option *known);

void tool_print_help(const struct tool *self);

/* Reads a decimal number; returns false if `text` is not one from `min` to `max`. */
bool tool_number(const char *text, int64_t min, int64_t max, int64_t *ret);

/* The same for the value that getopt_long found for `option`. Returns TOOL_OK, or the exit status
 * after it has printed the error. */
int tool_take_number(const struct tool *self, const char *option, int min, int max, int *ret);

/* Finds the absolute path of a readable file, which the caller owns. Returns false
 * and sets errno if the file cannot be read. */
bool tool_readable(const char *path, char **ret);

#endif
