/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.h - batches of transfers, while they are under way. */
#ifndef TENREC_REGION_BULK_H
#define TENREC_REGION_BULK_H

#include "rpc/call/call.h"
#include "rpc/region/region_copy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/region.h>

struct dispatch_into;

/* Entries that one message asks for: neighbours in the list, of the same region and direction. */
struct bulk_request {
    struct call_hook hook; /* first */
    struct bulk *bulk;
    struct region_bytes *entry; /* n, local: shared until no byte of the request is used */
    size_t n;
    atomic_size_t used; /* tensors of the local bytes */
    bool reads;
    atomic_bool arrived; /* the bytes of a read are in the host */
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
    struct region_bytes entry[];
};

void bulk_drop(struct bulk *b);

/* Completes a future, if there is one. */
void bulk_complete(struct tenrec_future *f, const tenrec_error *why);

/* The call of the request has ended, or was not sent. */
void bulk_request_ended(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why);

/* ---- bulk_bytes.c --------------------------------------------------------------------------- */

/* Shares a local tensor. On a device its bytes are copied on a stream that waits for the work which
 * this thread has queued. errors: ENOMEM, the driver's */
tenrec_status bulk_entry_fill(struct region_bytes *b, const struct tenrec_bulk *e,
                              tenrec_error *err);

/* The tensors of the first `n` entries, or none. The caller has a use of the bytes. errors: ENOMEM
 */
tenrec_status bulk_bytes_of(struct bulk_request *r, size_t n, struct tenrec_tensor **ret,
                            tenrec_error *err);
void bulk_bytes_end(struct bulk_request *r); /* of a use */
void bulk_free_one(struct bulk *b); /* counts down the requests whose local bytes are in use */

/* The memory for the `n` tensors of an answer: `first` is that of the call. *ret stays empty if the
 * call is no BULK_READ of so many parts. errors: ENOMEM */
tenrec_status bulk_into(struct tenrec_tensor *first, uint32_t n, struct dispatch_into *ret,
                        tenrec_error *err);

/* An answer of a BULK_READ has arrived: `first` is as above. Returns true if it has taken the
 * message: it ends the call once the bytes are on their device. */
bool bulk_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_tensor *first,
                  struct tenrec_msg *msg);

/* ---- bulk_copy.c: requests whose local bytes are on a device -------------------------------- */

/* Sends a write once its bytes are in the host. `spec` is copied, `msg` taken always. */
void bulk_copy_out(struct tenrec_worker *w, struct bulk_request *r, const struct call_spec *spec,
                   struct tenrec_msg *msg);

/* Ends the call of a read with its answer once the bytes are on their device. Takes msg. */
void bulk_copy_in(struct tenrec_worker *w, struct bulk_request *r, tenrec_peer from,
                  struct tenrec_msg *msg);

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
