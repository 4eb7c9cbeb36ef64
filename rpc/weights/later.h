/* SPDX-License-Identifier: Apache-2.0 */
/* later.h - calls that wait in a list for an event, which answers them. */
#ifndef TENREC_WEIGHTS_LATER_H
#define TENREC_WEIGHTS_LATER_H

#include <stdbool.h>
#include <tenrec/rpc.h>

struct later {
    struct later *next;
    struct tenrec_call *call;
    tenrec_error why; /* of the answer; OK: the call has its value */
};

/* Returns true if the call has an answer. */
typedef bool later_ready_fn(struct later *l, void *arg);

static inline void later_add(struct later **list, struct later *l)
{
    l->next = *list;
    *list = l;
}

/* Moves those that have an answer to *done. */
void later_try(struct later **list, later_ready_fn *ready, void *arg, struct later **done);
/* Moves all, with that answer. */
void later_fail(struct later **list, const tenrec_error *why, struct later **done);
/* Answers all, and frees them. No lock is held. */
void later_finish(struct later *done);

#endif
