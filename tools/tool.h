/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - functions that the sub-commands of `tenrec` share. */
#ifndef TENREC_TOOLS_TOOL_H
#define TENREC_TOOLS_TOOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
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

extern const struct tool tool_check, tool_conformance, tool_dump, tool_info, tool_perf, tool_ping,
    tool_plugin, tool_run, tool_secret, tool_set, tool_top;

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

/* One option, and where its value goes. */
struct tool_option {
    const char *name; /* behind "--" */
    char letter;      /* behind "-"; '\0' for none */
    enum {
        TOOL_FLAG,     /* bool */
        TOOL_TEXT,     /* const char *, borrowed from argv */
        TOOL_NUMBER,   /* int, from `min` to `max` */
        TOOL_DURATION, /* uint64_t, milliseconds; not 0 when `min` is not */
        TOOL_SIZE,     /* uint64_t, at most `max` */
    } kind;
    void *value;
    int64_t min, max;
};

enum { TOOL_OPTIONS_MAX = 16, TOOL_GO_ON = -1 };

/* Reads the options, and leaves optind at the first other word; with `first` they end before that.
 * Returns TOOL_GO_ON, or an exit status after --help or an error was printed. */
int tool_options(const struct tool *self, int argc, char **argv, bool first,
                 const struct tool_option *option, size_t n);

void tool_print_help(const struct tool *self);

/* Reads a decimal number; returns false if `text` is not one from `min` to `max`. */
bool tool_number(const char *text, int64_t min, int64_t max, int64_t *ret);

/* Finds the absolute path of a readable file, which the caller owns. Returns false
 * and sets errno if the file cannot be read. */
bool tool_readable(const char *path, char **ret);

/* progress.c: one line on a terminal that says how far a command is. It appears after a second, is
 * written again twice a second, and is gone at the end. Without a terminal there is none. */

/* Writes how far it is, such as "30 of 100 calls". Runs on the thread of the progress. */
typedef void progress_fn(void *arg, char *to, size_t room);

struct progress {
    int fd; /* -1: no terminal */
    const char *name, *what;
    progress_fn *how_far; /* NULL: the time alone */
    void *arg;
    uint64_t begin_ns, limit_ms;
    bool shown, stop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* Begins; texts are borrowed until progress_end. Does nothing if `fd` is no terminal.
 *
 * name      of the command
 * what      "attaching to the group"
 * limit_ms  of the wait; 0: none is shown */
void progress_begin(struct progress *p, int fd, const char *name, const char *what,
                    uint64_t limit_ms, progress_fn *how_far, void *arg);
void progress_end(struct progress *p);

/* The same without a thread, for a command that forks: shows the line if the command has lasted a
 * second, or removes it (NULL). */
void progress_show(struct progress *p, const char *text);

#endif
