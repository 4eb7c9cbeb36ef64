/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starts one process of a group. */
#ifndef TENREC_TOOLS_SPAWN_H
#define TENREC_TOOLS_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>
#include <tenrec/error.h>

struct spawn {
    char *const *argv; /* argv[0] is searched in PATH */
    char *const *env;  /* the whole environment, "NAME=value", NULL at the end */
    bool terminal;     /* stdout is a terminal, as wide as this process's */
    int narrower;      /* minus this many columns */
};

struct spawned {
    pid_t pid; /* leads a process group of its own */
    int fd[3]; /* [1], [2]: read ends of its stdout and stderr; [0] is unused */
};

/* Starts the process; stdin is /dev/null. It is killed when the calling thread ends.
 * errors: ENOTFOUND (no such program), EOS (cannot be executed, no process). */
tenrec_status spawn(const struct spawn *what, struct spawned *ret, tenrec_error *err);

/* Returns a copy of the environment in which the `n` given "NAME=value" texts are
 * set; "NAME" alone removes the variable. Borrows the texts; the caller owns the
 * array. NULL when out of memory. */
char **spawn_environment(char *const *set, size_t n);

/* Names of signals; not every C library has sigabbrev_np. */

enum { SIGNAL_NAME_MAX = 24 };

/* Writes "SIGTERM", or "signal 40" for one without a name, and returns `buf`. */
const char *signal_name(int sig, char buf[SIGNAL_NAME_MAX]);

#endif
