/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - the state of a thread that work.h starts, for its jobs. */
#ifndef SOAK_CALLER_H
#define SOAK_CALLER_H

#include "work.h"

#include <pthread.h>
#include <stdlib.h>

/* As ledger.py calls them; kinds from 100 on are those of calls inside of functions. */
enum kind {
    KIND_MIX,
    KIND_FLIP,
    KIND_BATCH,
    KIND_PASS,
    KIND_REF,
    KIND_LEND,
    KIND_WRITE,
    KINDS, /* that are drawn */
    KIND_READ = KINDS,
    KIND_FINISH,
    KIND_PUBLISH,
    KIND_PULL,
    KIND_REPORT,
    KIND_WITHDRAW,
    KIND_WAIT,
    KIND_INNER = 100,
    KIND_OFFER,
    KIND_REVOKE,
    KIND_THEN,
};

struct caller_job {
    /* Does one thing; returns false if the thread has to rest for a moment then. */
    bool (*work)(struct caller *c);
    /* Gives back what the thread has, before it falls silent or ends. NULL: nothing */
    void (*rest)(struct caller *c);
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

/* A member, perhaps oneself. Returns false if there is none. */
bool draw_member(struct caller *c, char name[TENREC_NAME_MAX + 1]);

/* A call of the ledger, whose limit is `ms`. */
void begin_as(uint64_t id, enum kind kind, int64_t ms);
uint64_t begin(enum kind kind, int64_t ms);
void end(uint64_t id, tenrec_status st, const tenrec_error *err);

static inline struct tenrec_call_options limited(int64_t ms)
{
    return (struct tenrec_call_options){ .size = sizeof(struct tenrec_call_options),
                                         .timeout_ms = ms };
}

/* The factor of limits, as in soak.py. */
static inline int slow(void)
{
    const char *text = getenv("TENREC_TEST_SLOW");

    return text && atoi(text) > 1 ? atoi(text) : 1;
}

/* transfers.c: leases blocks of a member's region, writes them and reads of them. */
void call_write(struct caller *c, const char *to, int64_t ms);

#endif
