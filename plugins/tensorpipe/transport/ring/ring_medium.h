/* SPDX-License-Identifier: Apache-2.0 */
/* ring_medium.h - the state of a connection over rings, for the files of its stream
 * (stream_ring.c: reading and writing; ring_opening.c; ring_events.c; ring_bells.c). */
#ifndef TENSORPIPE_RING_MEDIUM_H
#define TENSORPIPE_RING_MEDIUM_H

#include "reactor/reactor.h"
#include "transport/conn.h"
#include "transport/ring/ring.h"

#include <pthread.h>

/* ring_bells.c: the bells of a connection over rings: bytes on its socket.
 *
 * A bell is sent without blocking; a socket that is full has bells enough that its owner
 * has not taken away. Each of them is an edge of epoll, and after each edge the loop
 * takes bells away first and then reads the ring's cursor, so that it misses none. A
 * thread that sleeps in poll needs the byte to wake up: while there is such a thread
 * (`sleeper`) that thread takes the bells away, and the loop does not. No call blocks:
 * whatever a peer does to its own end of a socket, the flags of each call on this end
 * are this side's. */

struct bells {
    const struct conn *conn;
    atomic_uint due;      /* asked for by this side since it took them away */
    pthread_mutex_t lock; /* held to take them away */
    bool sleeper;         /* under it: a thread sleeps until a bell rings */
};

void bells_init(struct bells *b, const struct conn *c);
void bells_finish(struct bells *b);

/* Rings the peer's bell. */
void bells_ring(const struct bells *b);

/* Asks for a bell when the cursor beside `word` moves. A peer rings at most once for each
 * time that it is asked, so a count of those bounds the bells in the socket. */
static inline void bells_ask(struct bells *b, _Atomic uint32_t *word)
{
    atomic_fetch_add_explicit(&b->due, 1, memory_order_relaxed);
    ring_sleep(word, RING_BELL);
}

/* Returns true if the connection's socket carries bells alone. On that of a reply connection, and
 * of a connection without a role yet, descriptors may arrive between the bells
 * (channel/shm_handoff.h): their reader takes both away. */
bool bells_are_alone(const struct bells *b);

/* Takes bells away once many are due, on the loop thread. */
void bells_take_as_loop(struct bells *b);

/* Takes bells away for a thread that begins to sleep until a bell rings (`sleeps`), or that
 * has ended that sleep. Returns true if there were any, which may have been the loop's. */
bool bells_take_as_sleeper(struct bells *b, bool sleeps);

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
