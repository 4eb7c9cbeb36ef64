/* SPDX-License-Identifier: Apache-2.0 */
/* pending.h - the calls that wait for an answer.
 *
 * Whoever takes the entry out completes the future: reply, send failure,
 * deadline, lost peer, cancel or shutdown. Exactly once by construction; who
 * comes late finds nothing. Slots carry a generation, so the id of a former
 * call never finds the present one. */
#ifndef TENREC_CALL_PENDING_H
#define TENREC_CALL_PENDING_H

#include "base/spinlock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

struct tenrec_future;
struct tenrec_tensor;

struct pending_entry {
    struct tenrec_future *future; /* shared */
    struct tenrec_tensor *into;   /* shared, or NULL */
    uint64_t deadline_ns;
    tenrec_peer to;
};

struct pending_slot;

#define PENDING_CHUNKS 12

struct pending {
    struct spinlock lock; /* guards all */
    unsigned n_chunks;
    struct pending_slot *chunk[PENDING_CHUNKS];
    uint32_t free_head; /* index + 1; 0: none */
    size_t n;
    _Atomic uint64_t added; /* since it was made; read without the lock */
};

void pending_init(struct pending *p);
void pending_finish(struct pending *p); /* must be empty */

/* Puts an entry in (takes its shares on success). errors: ENOMEM, EAGAIN (a
 * million calls wait already) */
tenrec_status pending_add(struct pending *p, const struct pending_entry *e, int64_t *ret_id);

/* Takes the entry of `id` out; false when there is none. */
bool pending_take(struct pending *p, int64_t id, struct pending_entry *ret);

/* The same for an answer of `from`; false also when that call went to another worker, whose
 * answer is still to come. */
bool pending_take_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret);

/* Looks at the entry without taking it: `into` is shared once more for the caller. */
bool pending_peek_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret);

/* Returns true if a call of that id waits, whichever worker shall answer it. */
bool pending_has(struct pending *p, int64_t id);

/* Take one by one what goes to `to` (any peer when to < 0), or what is late;
 * false when there is none left. *at starts at 0 and remembers the place;
 * *next_ns starts at CLOCK_NEVER and becomes the earliest deadline that
 * remains. */
bool pending_take_peer(struct pending *p, tenrec_peer to, uint32_t *at, struct pending_entry *ret);
bool pending_take_late(struct pending *p, uint64_t now_ns, uint32_t *at, struct pending_entry *ret,
                       uint64_t *next_ns);

size_t pending_count(struct pending *p);

#endif
