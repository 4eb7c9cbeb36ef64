/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.h - batches of transfers, while they are under way. */
#ifndef TENREC_REGION_BULK_H
#define TENREC_REGION_BULK_H

#include "rpc/call/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/region.h>

struct bulk_entry {
    struct call_hook hook; /* first */
    struct bulk *bulk;
    struct tenrec_tensor *local; /* shared by the bytes of the entry */
    bool reads;
    atomic_bool arrived; /* the bytes of a read are there */
};

/* The call that follows the entries. */
struct bulk_then {
    struct tenrec_value
        *call; /* owns: an array of the name and the array of arguments; NULL: none */
    tenrec_peer to;
    uint64_t deadline_ns;
};

/* Lives until the last entry has ended, and no message has bytes of it. */
struct bulk {
    atomic_size_t refs; /* of what is sent, of the bytes of each entry, and of the sending thread */
    atomic_size_t left; /* entries that have not ended, and the sending thread */
    atomic_size_t local; /* entries whose local bytes are in use, and the sending thread */
    struct tenrec_future *future, *visible, *free; /* shared; the last two may be NULL */
    pthread_mutex_t lock;                          /* guards why and failed */
    tenrec_error why;
    size_t failed; /* the first entry that failed; n: none */
    struct bulk_then then;
    size_t n;
    struct bulk_entry entry[];
};

/* An answer of a BULK_READ has arrived with its bytes in `into`. */
void bulk_arrived(struct tenrec_tensor *into);

/* ---- bulk_check.c --------------------------------------------------------------------------- */

const struct tenrec_bulk *bulk_entry_at(const struct tenrec_bulk *entries, size_t i);

tenrec_status bulk_check_options(const struct tenrec_bulk_options *o, size_t n, tenrec_error *err);

/* Checks all that is known before a batch is sent. *ret_to: the owner of each; owns. `one`: it has
 * to be the same one.
 * errors: EINVAL, EPERM, EPEER_UNKNOWN, EUNSUPPORTED, ENOMEM */
tenrec_status bulk_check(struct tenrec_worker *w, const struct tenrec_bulk *entries, size_t n,
                         bool one, tenrec_peer **ret_to, tenrec_error *err);

/* ---- bulk_then.c ---------------------------------------------------------------------------- */

/* Keeps the function and its arguments. errors: EINVAL, ENOMEM */
tenrec_status bulk_then_keep(struct bulk_then *t, const struct tenrec_bulk_options *o,
                             tenrec_error *err);

/* Calls the function. Its answer completes `result`. */
void bulk_then_begin(struct tenrec_worker *w, const struct bulk_then *t,
                     struct tenrec_future *result);

#endif
