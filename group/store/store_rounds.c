/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store.h"

#include "core/base/clock.h"

#define MS UINT64_C(1000000) /* in nanoseconds */

enum { LAST_MS = 20 }; /* a shorter rest goes into the last round */

/* The last round is the wait itself. On ETIMEDOUT `missing` is set for each key. */
static tenrec_status wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                                uint64_t until_ns, uint64_t deadline_ns, struct store_value *ret,
                                bool *missing, tenrec_error *err)
{
    tenrec_status st;

    if (until_ns != deadline_ns) {
        st = store_wait_round(s, keys, n, until_ns, deadline_ns, missing, err);
        if (st != TENREC_OK || !ret)
            return st;
    }
    return store_get_all(s, keys, n, deadline_ns, ret, missing, err);
}

tenrec_status store_get_rounds(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, const struct store_rounds *how,
                               struct store_value *ret, bool *missing, tenrec_error *err)
{
    const uint64_t most_ns = how->most_ms * MS;
    uint64_t round_ns = how->first_ms * MS;
    tenrec_error why;
    tenrec_status st;
    bool last;

    do {
        const uint64_t now_ns = clock_now_ns();
        const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

        last = left_ns < LAST_MS * MS;
        round_ns = round_ns > left_ns / 2 ? left_ns / 2 : round_ns;
        st = wait_round(s, keys, n, last ? deadline_ns : now_ns + round_ns, deadline_ns, ret,
                        missing, &why);
        if (st != TENREC_ETIMEDOUT) {
            if (st != TENREC_OK && err)
                *err = why;
            return st;
        }
        st = how->between(how->arg, missing, err);
        round_ns = round_ns * 2 < most_ns ? round_ns * 2 : most_ns;
    } while (st == TENREC_OK && !last);
    return st == TENREC_OK ? tenrec_fail(err, TENREC_ETIMEDOUT, "%s", why.text) : st;
}
