/* SPDX-License-Identifier: Apache-2.0 */
/* shm_watch.h - how the loop thread polls connections that wake no thread.
 *
 * A peer on libtensorpipe that puts something into a ring tells its reactor,
 * and expects that to be looked at all the time. A thread that waits for an answer polls
 * itself (stream_shm.c). For everything else the loop thread looks,
 * with pauses that grow with the silence: they never add more than a quarter to
 * what something took anyway, and end at SHM_PAUSE_MAX_NS. It looks at nothing
 * when there is no such connection, or when callers read all of them. */
#ifndef TENSORPIPE_SHM_WATCH_H
#define TENSORPIPE_SHM_WATCH_H

#include "reactor/reactor.h"
#include "transport/tp_shm/stream_shm.h"

#define SHM_PAUSE_MIN_NS UINT64_C(50000)
#define SHM_PAUSE_MAX_NS UINT64_C(1000000)

struct endpoint;

/* Of one agent. */
struct shm_watch {
    struct shm_medium *first; /* loop thread */
    uint64_t last_ns;         /* something came; loop thread */
    struct reactor_task look_task;
    atomic_uint n;              /* connections that are looked at */
    atomic_uint_fast64_t looks; /* so often it looked at them */
};

/* How long one that has waited for `waited_ns` may pause before the next look. */
static inline uint64_t shm_pause_ns(uint64_t waited_ns)
{
    uint64_t ns = waited_ns / 4;

    if (ns < SHM_PAUSE_MIN_NS)
        return SHM_PAUSE_MIN_NS;
    return ns < SHM_PAUSE_MAX_NS ? ns : SHM_PAUSE_MAX_NS;
}

void shm_watch_init(struct shm_watch *w);
/* From now on it is looked at; on the loop thread. */
void shm_watch_add(struct shm_watch *w, struct shm_medium *m);
void shm_watch_remove(struct shm_watch *w, struct shm_medium *m);

/* There is something new to look for; any thread. */
void shm_watch_wake(struct endpoint *ep);

/* Looks, and tells the connections what there is. Returns in how many
 * nanoseconds to look again, UINT64_MAX: when it is woken. Loop thread. */
uint64_t shm_watch_look(struct endpoint *ep);

#endif
