/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - one line on a terminal that says how far a command is. It appears after a second, is
 * written again twice a second, and is gone at the end. Without a terminal there is none. */
#ifndef TENREC_TOOLS_PROGRESS_H
#define TENREC_TOOLS_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
