/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - the lock of a group's list: a lease in the group's store, and torch's token. */
#ifndef TENREC_MEMBERSHIP_LEASE_H
#define TENREC_MEMBERSHIP_LEASE_H

#include "group/store/store.h"

#include <stdbool.h>

/* A lock in a store that outlives no holder: the holder states a lease, and a waiter that
 * has seen the same holder for that long, by its own clock, takes the lock over. Clocks of hosts
 * are never compared. A waiter on the holder's host takes over at once when the holder's process
 * has ended. A holder that was too slow may so share the lock with its successor: the data it
 * guards is changed by compare_set only.
 *
 * Waiters draw tickets, and a holder that releases the lock writes the key of the next ticket, for
 * which its owner waits. That only saves polls: a waiter also polls, seldom, since the worker
 * before it may have died or given up, or draws no tickets.
 *
 * A waiter may ask the holder to do its work (requests.h): the request stands beside its ticket,
 * and a holder that has done it writes the answer under the key of the ticket. */

#define LEASE_TOKEN 320 /* bytes, with a NUL */
#define LEASE_KEY 64
#define LEASE_ANSWER 64
#define LEASE_CALL "1" /* no answer: the owner of the ticket may acquire the lease */

/* Keys of a ticket. */
enum lease_word {
    LEASE_TURN,  /* <key>/<ticket>: a call, or the answer */
    LEASE_AGAIN, /* <key>/<ticket>/in: the same, of a waiter that has an answer already */
    LEASE_WANTS, /* <key>/<ticket>/wants: the request */
    LEASE_WORDS
};

struct lease {
    struct tenrec_store *store; /* borrowed */
    const char *key;
    uint64_t lease_ms; /* how long other workers wait after our death */
    bool held;
    uint64_t acquired_ns;      /* time of the request, while the lease is held */
    bool doubtful;             /* an answer was lost: `mine` may be under the key */
    int64_t ticket;            /* drawn, and not used up by a release; 0: none */
    int64_t next;              /* the ticket to call at the release; 0: the one behind ours */
    enum lease_word waits;     /* the key that is waited for */
    struct store_value wants;  /* borrowed: the request of the next acquire; without data: none */
    char answer[LEASE_ANSWER]; /* of the holder to the last acquire; "": none */
    char mine[LEASE_TOKEN];    /* value of the key while the lease is ours */
    /* The token of another holder as it was seen last, and since when. Kept between attempts:
     * attempts shorter than a lease detect its expiry, too. */
    char seen[LEASE_TOKEN];
    uint64_t since_ns;
};

void lease_word_key(const struct lease *l, int64_t ticket, enum lease_word word,
                    char ret[LEASE_KEY]);

/* Acquires the lease. `holder` is for messages: 1 to 127 characters without blanks. With a request
 * it may be answered instead: then the lease is not held.
 *
 * errors: ETIMEDOUT (names the holder), and the store's */
tenrec_status lease_acquire(struct lease *l, const char *holder, uint64_t deadline_ns,
                            tenrec_error *err);

/* Returns true if the last attempt failed because another worker holds the lease. Then the store
 * answers. */
bool lease_is_others(const struct lease *l);

/* Gives up our ticket, with its request. */
void lease_drop_ticket(struct lease *l, uint64_t deadline_ns);

/* Returns true if the lease is still ours. The store is asked only when a waiter may have taken it
 * over. */
bool lease_kept(const struct lease *l, uint64_t deadline_ns);

/* Releases the lease, unless a waiter has taken it over. A failed release is not retried: the lease
 * expires, or our next acquire finds it. */
void lease_release(struct lease *l, uint64_t deadline_ns);

/* The lock of a group's list. Tenrec workers exclude each other by a lease, which
 * expires when its holder dies. Its holder also acquires torch's token, in the name of all Tenrec
 * workers: so workers of torch.distributed.rpc wait while one of ours joins or leaves, and ours
 * while one of theirs does. */

/* The value of torch's token while it is ours, and the key for which torch's workers wait then.
 * Names of torch's workers have no '.', so no such worker has this one. All Tenrec workers write
 * the same value: after the death of its holder the next worker acquires it. */
#define GROUP_LOCK_TOKEN "Token_for_tenrec.workers"

/* A torch worker gives no lease with the token, and the token survives its death. A waiter that has
 * seen the same token for so long takes it over. */
#define GROUP_LOCK_TORCH_MS 10000

struct group_lock {
    struct lease lease;
    struct tenrec_store *torch; /* borrowed: the part with torch's keys */
    bool others;                /* the last attempt failed because another worker holds it */
    /* The torch worker's token that the last attempt saw, and since when. */
    char seen[LEASE_TOKEN];
    uint64_t since_ns;
};

/* Acquires the lock; `holder`, and an answer instead, as in lease_acquire.
 *
 * errors: ETIMEDOUT (names the holder), and the store's */
tenrec_status group_lock_acquire(struct group_lock *l, const char *holder, uint64_t deadline_ns,
                                 tenrec_error *err);

/* Releases the lock, if we hold it, also after the deadline. */
void group_lock_release(struct group_lock *l, uint64_t deadline_ns);

#endif
