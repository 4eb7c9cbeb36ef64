/* SPDX-License-Identifier: Apache-2.0 */
/* setuid.h - a setuid copy of the test program, which runs with the rights of another user. */
#ifndef TESTS_SETUID_H
#define TESTS_SETUID_H

#include <stdbool.h>
#include <stddef.h>

#define SETUID_USER 65534

/* Begins the path of each copy: main recognises the copy by its argv[0]. */
#define SETUID_MARK "tenrec-setuid-"

enum {
    SETUID_NOT_SECURE = 77, /* exit status of a copy: the file system ignores the setuid bit */
    SETUID_ARGS_MAX = 32,
};

struct setuid_copy {
    char folder[64], program[96]; /* the folder is open to all */
};

/* Returns false for a process that is not root's, which cannot give the copy to another user. */
bool setuid_copy_make(struct setuid_copy *c);
void setuid_copy_remove(struct setuid_copy *c);

/* Runs the copy with `args` (behind argv[0]) and `env`, both ended by NULL. Skips the case where
 * no program can be started so.
 *
 * ret      all that the copy printed
 * returns  the exit status */
int setuid_copy_run(const struct setuid_copy *c, char *const args[], char *const env[], char *ret,
                    size_t room);

#endif
