/* SPDX-License-Identifier: Apache-2.0 */
/* ring_medium.h - the state of a connection over rings, for the files of its stream
 * (stream_ring.c: reading and writing; ring_opening.c; ring_events.c; ring_bells.c). */
#ifndef TENSORPIPE_RING_MEDIUM_H
#define TENSORPIPE_RING_MEDIUM_H

#include "reactor/reactor.h"
#include "transport/ring/ring_bells.h"
#include "transport/ring/ring_setup.h"

#define RING_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

enum ring_state {
    RING_CALLED,  /* waits for the memory, or for the socket */
    RING_REACHED, /* the socket is connected, the memory goes out next */
    RING_ASKED,   /* the memory went out, the answer is due */
    RING_OPEN,
};

struct ring_medium {
    struct conn *conn;
    struct ring_end end;
    enum ring_state state; /* of the loop thread; RING_OPEN before other threads use it */
    int error;             /* why it never opened */
    bool caller, watched;
    bool bare; /* the socket carries the proof, before the rings are set up */
    struct reactor_look look;
    struct reactor_task recheck;
    atomic_int hears; /* enum conn_hears */
    atomic_bool wants_room;
    atomic_bool ended;  /* the peer is gone, or this side has cut the connection */
    atomic_bool broken; /* the peer's cursor is impossible */
    atomic_uint_fast64_t seen, got;
    struct bells bells;
};

/* Sets the end, and wakes those threads of this process that sleep in a futex. Threads
 * that sleep until a bell rings are woken by the end of the socket. */
void ring_medium_end(struct ring_medium *m);

/* Returns true if the ring has bytes that were not reported to the loop. */
static inline bool ring_medium_has_news(const struct ring_medium *m)
{
    return ring_head(&m->end.in) != atomic_load_explicit(&m->seen, memory_order_relaxed);
}

/* ring_opening.c: the socket connects, the caller sends the memory, the listener answers. All of
 * it on the loop thread. */

/* The caller's next step, after these events of the socket. Returns events of the connection. */
uint32_t ring_opening_caller(struct ring_medium *m, uint32_t fetched);
/* The listener's: the memory may have arrived. */
void ring_opening_listener(struct ring_medium *m);

/* Begins to watch the socket, or leaves that to stream_ring_reached. Returns 0 or an errno. */
int ring_opening_watch(struct ring_medium *m);
/* For struct stream. */
int ring_opening_share(struct conn *c);
/* Bytes of the largest memory that a connection needs. */
size_t ring_opening_most(void);

/* ring_session.c: TLS over the socket while it is bare, in mode mtls. */

/* Returns false without memory. */
bool ring_session_open(struct conn *c, bool dials);
/* For struct stream. */
tenrec_status ring_session_shake(struct conn *c, tenrec_error *err);
/* The socket is plain from here on: nothing is sent. */
void ring_session_close(struct conn *c);

/* ring_events.c: events for the loop thread. They are edges, as with sockets: `seen` is how far
 * the peer had written at the last read or the last report. The loop asks to be woken again only
 * when it is about to sleep (struct reactor_look), so that a busy loop costs its peers nothing. */

void ring_events_init(struct ring_medium *m);

/* For struct stream. */
uint32_t ring_events(struct conn *c, uint32_t fetched);
int ring_events_hear(struct conn *c, enum conn_hears what);

#endif
