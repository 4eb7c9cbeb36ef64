/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/lease.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "group/membership/torch_keys.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_POLL_US = 2000,
    LONGEST_POLL_US = 100000,
};

/* Makes torch's workers that wait for `token` retry. They wait for a key, which is missing while
 * the token is held, so that they do not spin. */
static void group_lock_wake(struct group_lock *l, const char *token, uint64_t deadline_ns)
{
    store_set(l->torch, token, "Done", 4, deadline_ns, NULL);
}

/* Attempts once to acquire the token, with the lease held: the token is free, or belongs to one of
 * our workers that died, or to a torch worker that was silent for too long. */
static tenrec_status group_lock_try_token(struct group_lock *l, uint64_t deadline_ns,
                                          bool *ret_ours, tenrec_error *err)
{
    const uint64_t now_ns = clock_now_ns();
    const bool over = *l->seen && now_ns - l->since_ns >= GROUP_LOCK_TORCH_MS * UINT64_C(1000000);
    char *now;
    tenrec_status st = store_swap_text(l->torch, TORCH_TOKEN, over ? l->seen : "", GROUP_LOCK_TOKEN,
                                       deadline_ns, &now, err);

    if (st != TENREC_OK)
        return st;
    *ret_ours = strcmp(now, GROUP_LOCK_TOKEN) == 0;
    if (*ret_ours) {
        st = store_remove(l->torch, GROUP_LOCK_TOKEN, deadline_ns, err);
        if (over) {
            log_line(TENREC_LOG_WARN, "group",
                     "took over the lock of torch's worker: '%s' was unchanged for %d s", l->seen,
                     GROUP_LOCK_TORCH_MS / 1000);
            group_lock_wake(l, l->seen, deadline_ns);
        }
        *l->seen = '\0';
    } else if (strncmp(l->seen, now, sizeof l->seen - 1) != 0) {
        snprintf(l->seen, sizeof l->seen, "%s", now);
        l->since_ns = now_ns;
    }
    free(now);
    return st;
}

/* After an attempt without an answer: the token may be ours, or a torch worker's. */
static void group_lock_give_up(struct group_lock *l, uint64_t deadline_ns)
{
    char *now;

    if (store_swap_text(l->torch, TORCH_TOKEN, GROUP_LOCK_TOKEN, "", deadline_ns, &now, NULL) ==
        TENREC_OK)
        group_lock_wake(l, GROUP_LOCK_TOKEN, deadline_ns);
    free(now);
    lease_release(&l->lease, deadline_ns);
}

tenrec_status group_lock_acquire(struct group_lock *l, const char *holder, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct backoff pause = { FIRST_POLL_US, LONGEST_POLL_US };
    bool ours = false;
    tenrec_status st;

    for (;;) {
        st = lease_acquire(&l->lease, holder, deadline_ns, err);
        l->others = st != TENREC_OK && lease_is_others(&l->lease);
        if (st != TENREC_OK || !l->lease.held)
            return st;
        st = group_lock_try_token(l, deadline_ns, &ours, err);
        if (st == TENREC_OK && ours)
            return st;
        if (st != TENREC_OK) {
            group_lock_give_up(l, deadline_ns);
            return st;
        }
        /* A torch worker may hold the token longer than our lease, for which our other workers
         * wait, too. */
        lease_release(&l->lease, deadline_ns);
        if (!backoff_take(&pause, deadline_ns)) {
            l->others = true;
            return tenrec_fail(err, TENREC_ETIMEDOUT,
                               "a worker of torch holds the lock of the group ('%s'), and has not "
                               "released it in time",
                               l->seen);
        }
    }
}

void group_lock_release(struct group_lock *l, uint64_t deadline_ns)
{
    /* Release the token first: the holder of the lease holds the token, too. */
    if (lease_kept(&l->lease, deadline_ns) &&
        store_set(l->torch, TORCH_TOKEN, "", 0, deadline_ns, NULL) == TENREC_OK)
        group_lock_wake(l, GROUP_LOCK_TOKEN, deadline_ns);
    lease_release(&l->lease, deadline_ns);
}
