/* SPDX-License-Identifier: Apache-2.0 */
/* pending.h - the table of calls that wait for an answer.
 *
 * The thread that removes an entry ends the call: for an answer, a send failure, a deadline,
 * a lost peer, a cancel or a shutdown. Exactly once by construction; a later event finds no entry.
 * No two calls have the same id, so the id of a former call never finds the present one. */
#ifndef TENREC_CHAIN_PENDING_H
#define TENREC_CHAIN_PENDING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

struct chain_call;
struct tenrec_future;
struct tenrec_tensor;

struct pending_entry {
    union {
        struct tenrec_future *future; /* shared; of rpc/call */
        struct chain_call *call;      /* of chain_calls.c */
    };
    struct tenrec_tensor *into; /* shared, or NULL */
    uint64_t deadline_ns;
    tenrec_peer to;
};

struct pending_slot;

#define PENDING_CHUNKS 12
#define PENDING_POP (UINT64_C(1) << 20) /* one more call, in pending.head */

struct pending {
    /* The first free slot, as index + 1, 0: none; and above that the number of calls so far, modulo
     * 2^43. */
    _Atomic uint64_t head;
    pthread_mutex_t growing; /* guards n_chunks */
    unsigned n_chunks;
    _Atomic uint32_t n_slots; /* in these */
    struct pending_slot *chunk[PENDING_CHUNKS];
};

void pending_init(struct pending *p);
void pending_finish(struct pending *p); /* must be empty */

/* Adds an entry (takes its shares on success). errors: ENOMEM, EAGAIN (a million calls wait) */
tenrec_status pending_add(struct pending *p, const struct pending_entry *e, int64_t *ret_id);

/* The number of calls so far. `ended` is the number of those that have ended, read before. */
static inline uint64_t pending_added(const struct pending *p, uint64_t ended)
{
    const uint64_t added = atomic_load(&p->head) / PENDING_POP;

    return ended + ((added - ended) & (INT64_MAX / PENDING_POP));
}

/* Removes the entry of `id`. Returns false if there is none. */
bool pending_take(struct pending *p, int64_t id, struct pending_entry *ret);

/* The same for an answer of `from`. Returns false also if the call was sent to another worker,
 * whose answer is pending. */
bool pending_take_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret);

/* Copies the entry without removing it; `into` is shared. */
bool pending_peek_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret);

/* Calls `fn` for each call that waits. Meanwhile the call cannot end: `fn` may not block. */
typedef void pending_fn(void *arg, int64_t id, const struct pending_entry *e);
void pending_each(struct pending *p, pending_fn *fn, void *arg);

/* The place of a call among all calls, as counted by pending_added. */
static inline uint64_t pending_order(int64_t id)
{
    return (uint64_t)id / PENDING_POP;
}

/* Returns true if a call with that id waits for any worker. */
bool pending_has(struct pending *p, int64_t id);

/* Remove the next call to `to` (to any peer if < 0), or the next expired call. Return false if none
 * is left. *at starts at 0 and keeps the position; *next_ns starts at CLOCK_NEVER and becomes the
 * earliest deadline left. */
bool pending_take_peer(struct pending *p, tenrec_peer to, uint32_t *at, struct pending_entry *ret);
bool pending_take_late(struct pending *p, uint64_t now_ns, uint32_t *at, struct pending_entry *ret,
                       uint64_t *next_ns);

#endif
