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
    RING_REACHED, /* the socket stands, the memory goes out next */
    RING_ASKED,   /* the memory went out, the answer comes next */
    RING_OPEN,
};

struct ring_medium {
    struct conn *conn;
    struct ring_end end;
    enum ring_state state; /* of the loop thread; RING_OPEN before any other thread comes */
    int error;             /* why it never opened */
    bool caller, watched;
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

/* Returns true if bytes lie in the ring that the loop was not told of. */
static inline bool ring_medium_has_news(const struct ring_medium *m)
{
    return ring_head(&m->end.in) != atomic_load_explicit(&m->seen, memory_order_relaxed);
}

#endif
