/* SPDX-License-Identifier: Apache-2.0 */
/* disconnect.h - peers whose connection broke. There is one connection per direction: ours to the
 * peer, on which our calls wait for answers, and the peer's to us. When its process exits both
 * break, and the program's callback is called once. */
#ifndef TENREC_MEMBER_DISCONNECT_H
#define TENREC_MEMBER_DISCONNECT_H

#include <tenrec/rpc.h>

struct loss;

struct disconnects {
    tenrec_peer_lost_fn *fn; /* may be NULL */
    void *arg;
    struct loss *last; /* the latest reported of each peer, by id; owns */
    size_t n;
};

struct disconnects *disconnects_new(void); /* NULL: no memory */
void disconnects_drop(struct disconnects *l);

/* Forgets all losses, for a group of `n`. errors: ENOMEM */
tenrec_status disconnects_reset(struct disconnects *l, size_t n, tenrec_error *err);
/* Forgets the loss of `peer`: its id has a new holder. */
void disconnects_forget(struct tenrec_worker *w, tenrec_peer peer);

/* Functions of the chain's user. */
void worker_peer_lost(void *worker, tenrec_peer peer, const tenrec_error *why);
void worker_caller_lost(void *worker, tenrec_peer peer, const tenrec_error *why);

/* A member of a static group has died for good (contact.h): fails the gathers that wait for it and,
 * unless `why` is NULL, abandons its references. */
void worker_peer_refused(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

#endif
