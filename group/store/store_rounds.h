/* SPDX-License-Identifier: Apache-2.0 */
/* store_rounds.h - a wait for keys in rounds, between which the waiter checks for other events. */
#ifndef TENREC_STORE_STORE_ROUNDS_H
#define TENREC_STORE_STORE_ROUNDS_H

#include "group/store/store.h"

struct store_rounds {
    uint32_t first_ms, most_ms; /* a round is twice as long as the one before, up to the most */
    /* Called after each round, with the missing keys. An error ends the wait. */
    tenrec_status (*between)(void *arg, const bool *missing, tenrec_error *err);
    void *arg;
};

/* As store_get_all. The last round has the whole deadline, for a store
 * that is too slow for a short round. errors: also those of `between` */
tenrec_status store_get_rounds(struct tenrec_store *s, const char *const *keys, size_t n,
                               uint64_t deadline_ns, const struct store_rounds *how,
                               struct store_value *ret, bool *missing, tenrec_error *err);

#endif
