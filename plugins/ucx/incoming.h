/* SPDX-License-Identifier: Apache-2.0 */
/* incoming.h - a message on its way in, from its first active message to its delivery.
 *
 * Data that is announced by rendezvous is fetched straight into the memory that the host
 * placed; eager data is copied there. All of this is the driver's. */
#ifndef UCX_INCOMING_H
#define UCX_INCOMING_H

#include "ucx.h"

/* Where the bytes of an active message are. */
enum how { PLAIN, KEPT, ANNOUNCED };

struct bytes {
    void *data; /* of ANNOUNCED: UCX's descriptor */
    size_t len;
    enum how how;
    bool taken; /* ANNOUNCED: UCX fetches it */
};
enum part_state { PART_HERE, PART_AWAITED, PART_COMING };

/* A message of which something has not arrived, or which waits for its turn. */
struct incoming {
    struct incoming *next;
    struct conn *conn; /* a reference */
    struct head head;
    struct tenrec_msg *msg; /* NULL: not made yet, or dropped */
    uint64_t cost;
    uint64_t charged;     /* to strangers */
    uint32_t left;        /* active messages of it that are not here */
    uint32_t fetches;     /* operations of UCX under way */
    bool listed;          /* the list of tensors is read */
    bool orphan;          /* its connection ended: free it after the last fetch */
    tenrec_error why;     /* code: not OK if it is dropped */
    unsigned char *list;  /* owned: of an announced list */
    unsigned char *state; /* owned: enum part_state of the payload and of each tensor */
};

/* What has arrived on a connection. */
struct conn_inbox {
    uint64_t sequence;            /* of the next message to receive */
    atomic_uint_fast64_t arrived; /* bytes; read by any thread */
    struct incoming *first, **last;
    struct held *held; /* messages before their turn */
    uint32_t n_held;
};

/* Begins the message of this head and data, in its turn. */
void incoming_begin(struct conn *c, const struct head *h, struct bytes *b);
/* Brings the bytes, as many as there are, to `to`; or does without them. */
void incoming_fetch(struct incoming *in, struct bytes *b, void *to);
void incoming_skip(struct incoming *in);
struct incoming *incoming_find(struct conn *c, uint64_t sequence);
void incoming_free(struct incoming *in);
void incoming_drop_all(struct conn *c);

#endif
