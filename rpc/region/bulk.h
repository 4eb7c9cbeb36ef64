/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.h - batches of transfers, while they are under way. */
#ifndef TENREC_REGION_BULK_H
#define TENREC_REGION_BULK_H

#include "rpc/call/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/region.h>

struct dispatch_into;

struct bulk_entry {
    struct tenrec_tensor *local; /* shared until no byte of the request is used */
    uint64_t offset, bytes;      /* in `local` */
};

/* Entries that one message asks for: neighbours in the list, of the same region and direction. */
struct bulk_request {
    struct call_hook hook; /* first */
    struct bulk *bulk;
    struct bulk_entry *entry; /* n */
    size_t n;
    atomic_size_t used; /* tensors of the local bytes */
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

/* Lives until the last request has ended, and no message has bytes of it. */
struct bulk {
    atomic_size_t refs;  /* of the requests, of their local bytes, and of the sending thread */
    atomic_size_t left;  /* requests that have not ended, and the sending thread */
    atomic_size_t local; /* requests whose local bytes are in use, and the sending thread */
    struct tenrec_future *future, *visible, *free; /* shared; the last two may be NULL */
    pthread_mutex_t lock;                          /* guards why and failed */
    tenrec_error why;
    size_t failed; /* the first entry that failed; n: none */
    struct bulk_then then;
    size_t n;
    struct bulk_request *request; /* behind the entries */
    struct bulk_entry entry[];
};

/* The memory for the `n` tensors of an answer: `first` is that of the call. *ret stays empty if the
 * call is no BULK_READ of so many parts. errors: ENOMEM */
tenrec_status bulk_into(struct tenrec_tensor *first, uint32_t n, struct dispatch_into *ret,
                        tenrec_error *err);

/* An answer of a BULK_READ has arrived: `first` is as above. */
void bulk_arrived(struct tenrec_tensor *first, const struct tenrec_msg *msg);

/* ---- bulk_check.c --------------------------------------------------------------------------- */

const struct tenrec_bulk *bulk_entry_at(const struct tenrec_bulk *entries, size_t i);

tenrec_status bulk_check_options(const struct tenrec_bulk_options *o, size_t n, tenrec_error *err);

/* Returns true if two entries name one region. */
bool bulk_same_region(const struct tenrec_bulk *a, const struct tenrec_bulk *b);

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
