/* SPDX-License-Identifier: Apache-2.0 */
/* asks.h - messages that wait until our view of a dynamic group is as new as their sender's. A
 * list, without locks. The version is a claim of the sender, so it may never be reached. */
#ifndef TENREC_CALL_ASKS_H
#define TENREC_CALL_ASKS_H

#include <stdbool.h>
#include <tenrec/message.h>

struct tenrec_worker;

/* The first part of a waiting message. */
struct ask {
    struct ask *next;
    tenrec_peer from;
    int64_t version;
    uint64_t deadline_ns; /* of the wait; CLOCK_NEVER: none */
    /* The wait is over. No lock held; frees the ask. */
    void (*ready)(struct tenrec_worker *w, struct ask *a);
};

/* A member has one or two requests at a time, and a gather or reference for each of its threads.
 * All senders that are no members share those of strangers. */
#define ASKS_OF_MEMBER 64
#define ASKS_OF_STRANGERS 64

/* The oldest first. */
struct asks {
    struct ask *first;
};

/* Adds `a` (taken). If the sender has too many, returns its oldest, which is ready then; else
 * NULL. */
struct ask *asks_add(struct asks *all, struct ask *a);
/* Removes the requests that `version` satisfies, or whose wait ends at `now_ns`; or `every`
 * request. */
struct ask *asks_take_ripe(struct asks *all, int64_t version, uint64_t now_ns, bool every);
/* Returns false if there is none, and lowers *next_ns to the next end of a wait. */
bool asks_have_ripe(const struct asks *all, int64_t version, uint64_t now_ns, uint64_t *next_ns);

#endif
