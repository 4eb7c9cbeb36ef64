/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - a lock in a store that outlives nobody: who holds it says for how
 * long at most, and whoever has seen the same holder for that long by its own
 * clock takes it over. Clocks of hosts are never compared. A holder that was
 * too slow may so share it with another: what it guards is changed by
 * compare_set only. */
#ifndef TENREC_GROUP_LEASE_H
#define TENREC_GROUP_LEASE_H

#include <stdbool.h>
#include <tenrec/store.h>

#define LEASE_TOKEN 224 /* bytes, with a NUL */

/* How the holder's silence is measured, for tests. */
struct lease_clock {
    uint64_t (*now_ns)(void *arg);
    void (*sleep_us)(void *arg, uint64_t us);
    void *arg;
};

struct lease {
    struct tenrec_store *store; /* borrowed */
    const char *key;
    uint64_t lease_ms;               /* what others must wait for when we die */
    const struct lease_clock *clock; /* NULL: the monotonic one */
    bool held;
    uint64_t taken_ns;      /* when it was asked for, while it is held */
    bool doubtful;          /* the store did not say whether `mine` is there */
    char mine[LEASE_TOKEN]; /* what is under the key while it is ours */
    /* Who else holds it, as it was seen last, and since when. Kept from one take to
     * the next: tries that are shorter than a lease end it, too. */
    char seen[LEASE_TOKEN];
    uint64_t since_ns;
};

/* Waits until the lock is ours. `holder` is for people: 1 to 127 characters
 * without blanks.
 *
 * errors: ETIMEDOUT (who holds it), and the store's */
tenrec_status lease_acquire(struct lease *l, const char *holder, uint64_t deadline_ns,
                            tenrec_error *err);

/* Did the last take fail as somebody else holds it? Then the store answers. */
bool lease_is_others(const struct lease *l);

/* Is it ours still? The store is asked only when it may have been taken over. */
bool lease_kept(const struct lease *l, uint64_t deadline_ns);

/* Lets go, unless somebody else has taken it over. What fails is tried no more:
 * then the lease ends, or our next take finds it. */
void lease_release(struct lease *l, uint64_t deadline_ns);

/* By the lease's clock. */
uint64_t lease_now_ns(const struct lease *l);
void lease_sleep_us(const struct lease *l, uint64_t us);

#endif
