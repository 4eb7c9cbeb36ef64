/* SPDX-License-Identifier: Apache-2.0 */
/* turn.h - callers that ask a server one after the other. */
#ifndef STORE_TURN_H
#define STORE_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

struct turn {
    pthread_mutex_t lock; /* guards `busy`; not held during a caller's turn */
    pthread_cond_t free;  /* `busy` became false */
    bool busy;
};

void turn_init(struct turn *t);
void turn_finish(struct turn *t);

/* Waits until no other caller has the turn.
 * errors: ETIMEDOUT */
tenrec_status turn_take(struct turn *t, uint64_t deadline_ns, tenrec_error *err);
void turn_give(struct turn *t);

#endif
