/* SPDX-License-Identifier: Apache-2.0 */
/* ring_bells.c - bytes on the socket that wake the loop thread, or a thread in poll. */
#include "transport/ring/ring_medium.h"
#include "transport/transport_local.h"

#define BELLS 256     /* taken away at once */
#define BELLS_LEFT 32 /* the loop leaves so many, as they take no call to ignore */

void bells_init(struct bells *b, const struct conn *c)
{
    b->conn = c;
    pthread_mutex_init(&b->lock, NULL);
}

void bells_finish(struct bells *b)
{
    pthread_mutex_destroy(&b->lock);
}

void bells_ring(const struct bells *b)
{
    const char bell = 0;

    (void)local_send(b->conn->source.fd, &bell, 1);
}

bool bells_are_alone(const struct bells *b)
{
    return b->conn->role != CONN_REPLY && b->conn->role != CONN_UNKNOWN;
}

/* Takes bells away. Returns true if there were any. With the lock. */
static bool bells_take(const struct bells *b)
{
    char bells[BELLS];

    return local_receive(b->conn->source.fd, bells, sizeof bells) > 0;
}

/* Each bell is an edge for the loop, whether others lie before it or not: a few are left, for
 * to take each away would cost a sleeping loop one system call more for each call. */
void bells_take_as_loop(struct bells *b)
{
    if (atomic_load_explicit(&b->due, memory_order_relaxed) < BELLS_LEFT)
        return;
    atomic_store_explicit(&b->due, 0, memory_order_relaxed);
    pthread_mutex_lock(&b->lock);
    if (!b->sleeper && bells_are_alone(b))
        bells_take(b);
    pthread_mutex_unlock(&b->lock);
}

bool bells_take_as_sleeper(struct bells *b, bool sleeps)
{
    bool rang;

    pthread_mutex_lock(&b->lock);
    b->sleeper = sleeps;
    rang = bells_are_alone(b) && bells_take(b);
    pthread_mutex_unlock(&b->lock);
    return rang;
}
