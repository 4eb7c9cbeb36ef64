/* SPDX-License-Identifier: Apache-2.0 */
/* disconnect.c - reaction to broken connections. worker.lock guards the losses. */
#include "rpc/monitor/monitor.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/probe.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/observe.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/rref/rref.h"

#include <stdlib.h>

/* Both connections to a dead process are seen to break within this time. */
enum { SAME_MS = 5000 };

enum direction { NOTHING_REPORTED, OURS, THEIRS };

struct loss {
    enum direction reported; /* the other direction belongs to the same loss */
    uint64_t until_ns;       /* ... if it breaks before */
};

void disconnects_reset(struct disconnects *l, size_t n)
{
    free(l->last);
    l->last = NULL;
    l->n = n;
}

void disconnects_finish(struct disconnects *l)
{
    free(l->last);
}

void disconnects_forget(struct tenrec_worker *w, tenrec_peer peer)
{
    pthread_mutex_lock(&w->lock);
    if (peer >= 0 && (size_t)peer < group_of(w)->disconnects.n && group_of(w)->disconnects.last)
        group_of(w)->disconnects.last[peer] = (struct loss){ .reported = NOTHING_REPORTED };
    pthread_mutex_unlock(&w->lock);
}

/* Returns false for the second direction of a loss already reported. Lock held. */
static bool disconnect_is_news(struct disconnects *l, tenrec_peer peer, enum direction which)
{
    uint64_t now = clock_now_ns();
    struct loss *last;
    bool same;

    if (peer < 0 || (size_t)peer >= l->n)
        return true;
    if (!l->last && !(l->last = memory_new(l->n, sizeof *l->last)))
        return true; /* the callback may come twice */
    last = &l->last[peer];
    same = last->reported != NOTHING_REPORTED && last->reported != which && now < last->until_ns;
    last->reported = same ? NOTHING_REPORTED : which;
    last->until_ns = now + SAME_MS * UINT64_C(1000000);
    return !same;
}

static void disconnect_report(struct tenrec_worker *w, tenrec_peer peer, enum direction which,
                              const tenrec_error *why)
{
    const uint32_t forks = forks_seen;
    tenrec_peer_lost_fn *fn;
    struct future_scope *scope;
    void *arg;

    pthread_mutex_lock(&w->lock);
    fn = disconnect_is_news(&group_of(w)->disconnects, peer, which) ? group_of(w)->disconnects.fn
                                                                    : NULL;
    arg = group_of(w)->disconnects.arg;
    pthread_mutex_unlock(&w->lock);
    if (!fn)
        return;
    scope = thread_lend();
    fn(w, peer, why, arg);
    forks_check(forks, "a callback for lost peers");
    thread_back(scope);
}

static void disconnect_lost(struct tenrec_worker *w, tenrec_peer peer, enum direction which,
                            const tenrec_error *why)
{
    tenrec_error reported = *why;

    peers_blame(&w->peers, peer, &reported);
    contact_lost(w, peer);
    if (which == OURS)
        call_fail_peer(w, peer, &reported);
    else if (peer >= 0)
        active_calls_cancel_from(&w->calls->active_calls, peer); /* no answer reaches the caller */
    /* In a dynamic group the monitor decides: a live member keeps its references. */
    if (atomic_load(&w->state) == WORKER_RUNNING && !monitor_suspects(w, peer))
        rrefs_lost(w, peer, !atomic_load(&w->leaving), &reported);
    if (atomic_load(&w->leaving) || atomic_load(&w->state) != WORKER_RUNNING)
        return;
    PROBE2(peer__lost, &reported.worker_name[0], &reported.text[0]);
    observe_note(w, which == OURS ? NOTE_PEER_LOST : NOTE_CALLER_LOST, peer, 0, why->code,
                 peers_name(&w->peers, peer));
    gather_lost(w, peer, &reported);
    disconnect_report(w, peer, which, &reported);
}

void worker_peer_lost(void *worker, tenrec_peer peer, const tenrec_error *why)
{
    disconnect_lost(worker, peer, OURS, why);
}

void worker_caller_lost(void *worker, tenrec_peer peer, const tenrec_error *why)
{
    disconnect_lost(worker, peer, THEIRS, why);
}

/* In a dynamic group heartbeats find the dead. */
bool worker_needs(void *worker, tenrec_peer peer)
{
    struct tenrec_worker *w = worker;

    return !group_of(w)->monitor && (contact_watches(w, peer) || rrefs_need(w, peer));
}

void worker_peer_refused(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why)
{
    tenrec_error reported;
    size_t n;

    tenrec_fail(&reported, TENREC_EPEER_LOST, "no process listens at its address");
    peers_blame(&w->peers, peer, &reported);
    gather_lost(w, peer, &reported);
    if (!why || atomic_load(&w->state) != WORKER_RUNNING)
        return;
    reported = *why;
    peers_blame(&w->peers, peer, &reported);
    n = rrefs_lost(w, peer, !atomic_load(&w->leaving), &reported);
    if (n > 0)
        log_line(TENREC_LOG_WARN, w->self.name,
                 "'%s' is dead: abandoned %zu control messages about its references",
                 peers_name(&w->peers, peer), n);
}

void tenrec_worker_set_peer_lost_callback(struct tenrec_worker *w, tenrec_peer_lost_fn *fn,
                                          void *arg)
{
    pthread_mutex_lock(&w->lock);
    group_of(w)->disconnects.fn = fn;
    group_of(w)->disconnects.arg = arg;
    pthread_mutex_unlock(&w->lock);
}
