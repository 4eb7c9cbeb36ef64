/* SPDX-License-Identifier: Apache-2.0 */
/* ring_bells.h - the bells of a connection over rings: bytes on its socket.
 *
 * A bell is sent without blocking; a socket that is full has bells enough that its owner
 * has not taken away. Each of them is an edge of epoll, and after each edge the loop
 * takes bells away first and then reads the ring's cursor, so that it misses none. A
 * thread that sleeps in poll needs the byte to wake up: while there is such a thread
 * (`sleeper`) that thread takes the bells away, and the loop does not. No call blocks:
 * whatever a peer does to its own end of a socket, the flags of each call on this end
 * are this side's. */
#ifndef TENSORPIPE_RING_BELLS_H
#define TENSORPIPE_RING_BELLS_H

#include "transport/conn.h"
#include "transport/ring/ring.h"

#include <pthread.h>

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

#endif
