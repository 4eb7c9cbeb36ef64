/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - the state of a thread that work.h starts, for its jobs. */
#ifndef SOAK_CALLER_H
#define SOAK_CALLER_H

#include "work.h"

#include <pthread.h>

struct caller_job {
    /* Does one thing; returns false if the thread has to rest for a moment then. */
    bool (*work)(struct caller *c);
};

struct caller {
    struct tenrec_worker *worker;
    const struct caller_job *job;
    uint64_t random;
    int64_t large; /* numbers of a large tensor, or 0 */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool paused, idle, stop; /* under lock */
};

/* A number of 0 .. below - 1; of the caller's thread. */
uint32_t draw(struct caller *c, uint32_t below);

#endif
