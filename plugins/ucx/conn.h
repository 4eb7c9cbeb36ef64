/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - a connection from the agent that made it (the client) to another. The client sends
 * requests on it, and the other agent answers them on it.
 *
 * The agent's lock guards it; the driver alone uses the fields that the lock does not guard. */
#ifndef UCX_CONN_H
#define UCX_CONN_H

#include "ucx.h"

/* incoming.c: a message on its way in, from its first active message to its delivery.
 *
 * Data that is announced by rendezvous is fetched straight into the memory that the host
 * placed; eager data is copied there. All of this is the driver's. */

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
    uint64_t charged;       /* to strangers */
    uint32_t left;          /* active messages of it that are not here */
    uint32_t fetches;       /* operations of UCX under way */
    bool listed;            /* the list of tensors is read */
    bool orphan;            /* its connection ended: free it after the last fetch */
    tenrec_error why;       /* code: not OK if it is dropped */
    unsigned char begun[4]; /* of the payload of a message that was dropped, ... */
    uint32_t n_begun;       /* ... so many bytes */
    unsigned char *list;    /* owned: of an announced list */
    unsigned char *state;   /* owned: enum part_state of the payload and of each tensor */
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

/* prove.c: the proof of the group secret at the begin of a connection, and to which connection a
 * message belongs. All of it is the driver's.
 *
 *     client                                      callee
 *     PROOF: its cookie, a record            ->
 *                                            <-   PROOF: its cookie, a record
 *     PROOF: a record                        ->
 *                                            <-   PROOF: a record
 *     HELLO, messages                        ->
 *                                            <-   HELLO, answers
 *
 * The client's cookie is the label of the proof, which covers it. Each later head has the
 * receiver's cookie, so the message that tells the callee's cookie has the client's. */

struct conn_proof {
    struct tenrec_proof *open; /* under way; NULL: none */
    bool must_prove;           /* before anything else of the connection is read */
    bool proved;               /* to be these: */
    tenrec_peer id;
    uint64_t incarnation;
    bool guarded; /* the other side knows, or learns, `cookie`, and each of its heads has it */
    bool met;     /* `peer_cookie` has arrived */
    unsigned char cookie[HEAD_COOKIE_LEN], peer_cookie[HEAD_COOKIE_LEN];
    tenrec_error refusal; /* code: not OK while the other side may read why */
};

/* errors   ECONFIG: a mode in which nothing can be proved here */
tenrec_status prove_open(struct ucx *u, tenrec_error *err);

/* Sends the client's first record. Returns false if there must be no proof. */
bool prove_dial(struct conn *c);

/* Returns true if the head, whose reading ended with `st`, is of this connection; else the
 * message is dropped, or the connection broken. */
bool prove_owns(struct conn *c, tenrec_status st, const struct head *h, const tenrec_error *err);

/* Handles a message of the proof, or before its end. Returns false if it is neither. */
bool prove_take(struct conn *c, const struct head *h, const struct bytes *b);

/* Returns true if a hello may claim this. */
bool prove_agrees(const struct conn *c, tenrec_peer id, uint64_t incarnation);

void prove_close(struct conn *c);

/* Guarded by the lock. */
struct conn_shared {
    uint32_t refs;   /* the table, each outgoing message, each operation of UCX */
    bool gone;       /* no send may be queued any more */
    bool told;       /* its loss is reported, or must not be */
    uint64_t queued; /* bytes of sends without a completion */
    struct conn *next_detached;
    char lanes[UCX_TEXT]; /* transports and devices that UCX chose; "" until known */
};

/* Requests under way, of which UCX_WINDOW bytes may be undelivered. */
struct conn_window {
    uint64_t sequence;                /* of the next message to send */
    uint64_t sent, taken_by_peer;     /* client: bytes of its requests */
    uint64_t held, taken, taken_told; /* callee: of these */
    struct outgoing *first, **last;   /* behind the window */
};

struct conn {
    struct ucx *u;
    uint32_t slot;
    uint64_t serial;                  /* never 0 */
    bool outgoing;                    /* we are the client */
    tenrec_peer peer;                 /* callee; of an incoming one the id that its hello claims:
                                         under the lock */
    uint64_t incarnation;             /* of the peer; likewise */
    char address[UCX_TEXT];           /* of the callee */
    char label[TENREC_NAME_MAX + 32]; /* for people: worker "worker1" */
    struct conn_shared shared;
    ucp_ep_h ep;
    bool known; /* the other side's hello arrived */
    bool used;  /* a send over it was handed to the wire */
    bool ended; /* closed, or being closed */
    bool ready; /* in the list `next_ready` */
    bool said_bye, awaits_bye;
    tenrec_error why;     /* code OK while nothing is wrong */
    uint64_t deadline_ns; /* for the hello */
    uint64_t max_message; /* bytes that the other side reads at most; 0: not known */
    struct conn_window window;
    struct conn_inbox inbox;
    struct conn_proof proof;
    struct conn *next_ready, *next_broken;
    struct conn *next_ep; /* in the table of endpoints */
};

/* conn.c; conn_new and conn_drop_locked with the lock. */
struct conn *conn_new(struct ucx *u, bool outgoing, tenrec_peer peer);
void conn_drop_locked(struct conn *c);
void conn_drop(struct conn *c);
/* The driver's. */
tenrec_status conn_connect(struct conn *c);
void conn_accept(ucp_conn_request_h request, void *agent);
struct conn *conn_of_endpoint(struct ucx *u, ucp_ep_h ep);
/* The sender of its messages: the member that it is of, or TENREC_ANONYMOUS. */
tenrec_peer conn_from(struct conn *c);
tenrec_peer conn_from_locked(const struct conn *c);
/* Stores the connection of a slot, or NULL; returns false if there is no such slot. It stays until
 * the driver, which alone may call this, ends it. */
bool conn_at(struct ucx *u, uint32_t slot, struct conn **ret);
void conn_hold(struct conn *c); /* one reference more */
/* Queued for deliver_ready. */
void conn_ready(struct conn *c);
/* Marks it: the text is the reason. conn_end_broken does the rest outside of UCX's callbacks. It
 * and conn_end_detached return true if there was one: UCX then has something to do. */
void conn_break(struct conn *c, tenrec_status code, const char *fmt, ...) TENREC_PRINTF(3, 4);
bool conn_end_broken(struct ucx *u);
/* Names the other side, a member or not. With the lock. */
void conn_name(struct conn *c);
bool conn_end_detached(struct ucx *u);
/* Closes it for good; nothing is reported. */
void conn_end(struct conn *c);
/* Returns the least time until a hello is due, milliseconds, -1 if none is. */
int conn_check_deadlines(struct ucx *u);

/* conn_lanes.c: reads what UCX says about the endpoint into c->lanes. */
void conn_read_lanes(struct conn *c);

/* Warns, once in the life of an agent, if UCX carries this connection to a member on another host
 * over TCP, unless the user asked for that. When the lanes are known. The driver's. */
void fallback_check(struct conn *c);

#endif
