/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - tells all members that this worker has joined, leaves or has removed another, and
 * waits until they know. */
#include "rpc/monitor/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"

#include <stdlib.h>

static bool is_under_way(const struct monitor *m, int64_t own)
{
    for (const struct sweep *s = m->sweeps; s; s = s->next)
        if (s->own && s->msg_id == own)
            return true;
    return false;
}

/* Returns the number of the announcement. Lock held. */
static int64_t announce_add(struct monitor *m, int64_t version)
{
    struct sweep *s = memory_new(1, sizeof *s);

    if (!s)
        return -1;
    *s = (struct sweep){ .kind = SWEEP_UP,
                         .level = SPREAD_ALL,
                         .from = m->w->self.id,
                         .version = version,
                         .msg_id = m->n_own++,
                         .own = true };
    sweep_add(m, s);
    return m->n_own - 1;
}

void monitor_announce(struct monitor *m)
{
    pthread_mutex_lock(&m->lock);
    announce_add(m, m->view.version);
    pthread_mutex_unlock(&m->lock);
}

static void announce_await(struct monitor *m, int64_t version, uint64_t deadline_ns)
{
    const int64_t own = announce_add(m, version);

    while (is_under_way(m, own) && !m->stopped && !m->expelled && monitor_wait(m, deadline_ns))
        ;
}

void monitor_announce_and_wait(struct monitor *m, int64_t version, uint64_t deadline_ns)
{
    pthread_mutex_lock(&m->lock);
    announce_await(m, version, deadline_ns);
    pthread_mutex_unlock(&m->lock);
}

/* Asks the members with a connection to this worker for a sign of life, which arrives there behind
 * our one-way calls: news of our leave come another way, and end the connection. */
static void probe_connected(struct monitor *m, uint64_t deadline_ns)
{
    const uint64_t patient_ns = clock_now_ns() + m->beats.rules.interval_ns * m->beats.rules.misses;
    const size_t n = atomic_load(&m->w->peers.top);
    uint64_t *bytes = memory_new(n, sizeof *bytes);
    int64_t first;

    if (!bytes)
        return;
    chain_received(m->w->chain, bytes, (uint32_t)n);
    pthread_mutex_lock(&m->lock);
    first = m->n_sent;
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] && (tenrec_peer)i != m->w->self.id && peers_has(&m->w->peers, (tenrec_peer)i))
            monitor_probe(m, (tenrec_peer)i,
                          (int64_t)peers_incarnation(&m->w->peers, (tenrec_peer)i));
    free(bytes);
    pthread_mutex_lock(&m->lock);
    while (monitor_probes_wait(m, first) && !m->stopped && !m->expelled &&
           monitor_wait(m, patient_ns < deadline_ns ? patient_ns : deadline_ns))
        ;
    pthread_mutex_unlock(&m->lock);
}

void monitor_announce_leaving(struct tenrec_worker *w, uint64_t deadline_ns)
{
    struct monitor *m = group_of(w)->monitor;
    const struct view_change c = { .kind = CHANGE_LEAVING,
                                   .id = w->self.id,
                                   .incarnation = m->incarnation };

    pthread_mutex_lock(&m->lock);
    view_log_add(&m->log, &c, m->log.last + 1);
    announce_await(m, m->view.version, deadline_ns);
    pthread_mutex_unlock(&m->lock);
    if (atomic_load(&w->calls->counts.one_way) > 0)
        probe_connected(m, deadline_ns);
}
