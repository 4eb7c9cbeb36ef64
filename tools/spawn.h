/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starts one process of a group. */
#ifndef TENREC_TOOLS_SPAWN_H
#define TENREC_TOOLS_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>
#include <tenrec/error.h>

struct spawn {
    char *const *argv; /* argv[0] is looked for in PATH */
    char *const *env;  /* the whole environment, "NAME=value", NULL at the end */
    bool terminal;     /* stdout shall be a terminal too, as wide as ours */
    int narrower;      /* by this many columns */
};

struct spawned {
    pid_t pid; /* leads a process group of its own */
    int fd[3]; /* [1], [2]: what it writes, to be read by us; [0] is unused */
};

/* Starts it; stdin is /dev/null. It is killed when the calling thread ends.
 * errors: ENOTFOUND (no such program), EOS (cannot be executed, no process). */
tenrec_status spawn(const struct spawn *what, struct spawned *ret, tenrec_error *err);

/* A copy of the environment in which the `n` given "NAME=value" texts replace
 * or follow what is there; "NAME" alone takes it away. The texts are borrowed, the array is free()d
 * by the caller. NULL: out of memory. */
char **spawn_environment(char *const *set, size_t n);

#endif
