/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.c - the bytes that arrive from members, as signs of their life. A large tensor occupies
 * the connection on which the heartbeats of its sender travel, so its receiver answers none of them
 * until it has all of it. But the receiver sends the sender a message of its own meanwhile, and
 * bytes from a member count as its answers. A stopped process sends nothing, though its kernel
 * acknowledges all that it has room for. */
#include "rpc/monitor/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/future/worker.h"

#include <stdlib.h>

/* More than the messages between members at rest. */
enum { SIGN_BYTES = 64 << 10 };

/* Makes room for `n` members. Returns false if out of memory. Lock held. */
static bool traffic_reserve(struct monitor *m, size_t n)
{
    struct traffic *more;

    if (n <= m->n_traffic)
        return true;
    more = memory_resize(m->traffic, n, sizeof *more);
    if (!more)
        return false;
    memset(more + m->n_traffic, 0, (n - m->n_traffic) * sizeof *more);
    m->traffic = more;
    m->n_traffic = n;
    return true;
}

/* `bytes` have arrived from a member. Returns true if it is due a sign of our life. Lock held. */
static bool traffic_note(struct monitor *m, const struct membership_view_entry *e, uint64_t bytes)
{
    struct traffic *t = &m->traffic[e->id];
    bool much;

    if (bytes > t->received) {
        t->moved_ns = clock_now_ns();
        heartbeats_progress(&m->beats, e->id, e->incarnation);
    }
    t->received = bytes;
    /* The count of a new connection starts at 0. */
    if (bytes < t->signed_at)
        t->signed_at = 0;
    much = bytes - t->signed_at >= SIGN_BYTES;
    if (much)
        t->signed_at = bytes;
    return much;
}

void monitor_look(struct monitor *m)
{
    const size_t n = atomic_load(&m->w->peers.top);
    uint64_t *bytes = memory_new(n, sizeof *bytes);
    struct membership_view_entry *due = memory_new(n, sizeof *due);
    size_t n_due = 0;

    if (bytes && due)
        chain_received(m->w->chain, bytes, (uint32_t)n);
    pthread_mutex_lock(&m->lock);
    if (bytes && due && traffic_reserve(m, n))
        for (size_t i = 0; i < m->view.n; i++) {
            const struct membership_view_entry *e = &m->view.entry[i];
            if ((size_t)e->id < n && e->incarnation != m->incarnation &&
                traffic_note(m, e, bytes[e->id]))
                due[n_due++] = *e;
        }
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < n_due; i++)
        monitor_probe(m, due[i].id, due[i].incarnation);
    free(due);
    free(bytes);
}

uint64_t traffic_moved_ns(const struct monitor *m, tenrec_peer id)
{
    return (size_t)id < m->n_traffic ? m->traffic[id].moved_ns : 0;
}
