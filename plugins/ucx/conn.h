/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - a connection from the agent that made it (the client) to another. The client sends
 * requests on it, and the other agent answers them on it.
 *
 * The agent's lock guards it; the driver alone uses the fields that the lock does not guard. */
#ifndef UCX_CONN_H
#define UCX_CONN_H

#include "incoming.h"
#include "prove.h"
#include "ucx.h"

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
