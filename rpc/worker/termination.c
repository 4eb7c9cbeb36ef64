/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/worker.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "group/meeting/membership.h"
#include "group/meeting/process_group.h"
#include "group/membership/membership.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor.h"

/* A one-way call may be lost with its connection. If no counter has changed and no call has run for
 * LOST_US, the missing calls are lost. */
enum { LOST_US = 1000000, PAUSE_FIRST_US = 1000, PAUSE_MAX_US = 100000 };

enum { SHUTDOWN_MS = 60000 };

int64_t shutdown_limit_ms(const struct tenrec_worker *w, int64_t ms)
{
    const int64_t of_calls = atomic_load(&w->calls->timeout_ms);

    if (ms != TENREC_TIMEOUT_DEFAULT)
        return ms;
    return of_calls == TENREC_TIMEOUT_NONE ? SHUTDOWN_MS : of_calls;
}

/* A member that is waited for this long is contacted, also if no connection broke. */
enum { CONTACT_MS = 200 };

static bool is_lost(void *worker, int32_t rank, uint64_t waited_ms)
{
    struct tenrec_worker *w = worker;

    if ((waited_ms >= CONTACT_MS || contact_is_lost(w, rank)) &&
        worker_enter(w, NULL) == TENREC_OK) {
        contact_try(w, rank);
        worker_leave(w);
    }
    return contact_refused(w, rank);
}

void termination_watch_disconnects(struct tenrec_worker *w)
{
    membership_set_lost(group_of(w)->membership, &(struct group_lost){ is_lost, w });
}

/* The sums of all workers, in two waves over the store: first each worker takes the counts of calls
 * that ended; then, once all have, the counts of those that began, and all are added up. If both
 * are equal, no call was in flight between the waves. (Mattern's four counters: no worker stops
 * meanwhile.) */
struct sums {
    int64_t calls_finished, one_way_ended;
    int64_t calls_made, one_way_sent, serving;
    int64_t references; /* of others, and their forks; final if no call was in flight */
};

enum { SUMS = sizeof(struct sums) / sizeof(int64_t) };

static bool is_quiet(const struct sums *s)
{
    return s->calls_finished == s->calls_made && s->one_way_ended >= s->one_way_sent;
}

/* How long the sums have not changed. All workers see the same sums, so all decide alike. */
struct stillness {
    struct sums sums;
    struct backoff pause;
    uint64_t since_us;
};

/* A control message of references counts until it is acknowledged or abandoned, also while it waits
 * for a retry. */
static uint64_t calls_finished(struct tenrec_worker *w)
{
    return atomic_load(&w->calls->counts.finished) + atomic_load(&w->calls->counts.jobs_ended);
}

static uint64_t calls_made(struct tenrec_worker *w)
{
    return pending_added(&w->calls->pending, atomic_load(&w->calls->counts.finished)) +
           atomic_load(&w->calls->counts.jobs);
}

/* Waits until no call of ours is outstanding. */
static tenrec_status wait_for_calls(struct tenrec_worker *w, uint64_t until, tenrec_error *err)
{
    uint64_t left;

    pthread_mutex_lock(&w->lock);
    while ((left = calls_made(w) - calls_finished(w)) > 0 && !clock_passed(until))
        clock_cond_wait(&w->changed, &w->lock, until);
    pthread_mutex_unlock(&w->lock);
    if (left > 0)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "%llu calls of '%s' are still outstanding",
                           (unsigned long long)left, w->self.name);
    return TENREC_OK;
}

/* No worker has anything left to do: in the store they count as left, before the first of them
 * knows. */
static tenrec_status termination_mark(void *worker, const int64_t *sum, uint64_t deadline_ns,
                                      tenrec_error *err)
{
    struct tenrec_worker *w = worker;
    struct sums s;

    memcpy(&s, sum, sizeof s);
    return is_quiet(&s) && s.references == 0
               ? membership_mark_left(group_of(w)->membership, deadline_ns, err)
               : TENREC_OK;
}

static tenrec_status termination_count(struct tenrec_worker *w, uint64_t until, struct sums *ret,
                                       tenrec_error *err)
{
    const struct process_group_summed before = { termination_mark, w };
    struct tenrec_process_group *pg = group_of(w)->membership->pg;
    struct sums mine = { .calls_finished = (int64_t)calls_finished(w),
                         .one_way_ended = (int64_t)atomic_load(&w->calls->counts.one_way_ended) };
    int64_t number[SUMS];
    tenrec_status st = process_group_barrier(pg, until, err);

    if (st != TENREC_OK)
        return st;
    mine.calls_made = (int64_t)calls_made(w);
    mine.one_way_sent = (int64_t)atomic_load(&w->calls->counts.one_way);
    mine.serving =
        (int64_t)(atomic_load(&w->calls->counts.taken) - atomic_load(&w->calls->counts.served));
    mine.references = rrefs_of_others(w);
    memcpy(number, &mine, sizeof mine);
    st = process_group_sum(pg, number, SUMS, &before, until, number, err);
    if (st == TENREC_OK)
        memcpy(ret, number, sizeof *ret);
    return st;
}

/* Waits before the next count. Returns false if the sums will not change any more. */
static bool wait_for_one_way_calls(struct tenrec_worker *w, const struct sums *now,
                                   struct stillness *still, uint64_t until)
{
    const bool moved = memcmp(now, &still->sums, sizeof *now) != 0;

    if (moved || now->serving > 0)
        still->since_us = 0;
    if (moved)
        still->pause.gap_us = PAUSE_FIRST_US;
    still->sums = *now;
    if (still->since_us >= LOST_US) {
        log_line(TENREC_LOG_WARN, w->self.name, "%lld one-way calls of the group never arrived",
                 (long long)(now->one_way_sent - now->one_way_ended));
        return false;
    }
    /* Planned time counts, not elapsed time, as it is equal at all workers. */
    still->since_us += still->pause.gap_us;
    backoff_take(&still->pause, until);
    return true;
}

/* Waits until no call of the group is outstanding. */
static tenrec_status termination_await(struct tenrec_worker *w, uint64_t deadline_ns,
                                       struct sums *ret, tenrec_error *err)
{
    struct stillness still = { .pause = { PAUSE_FIRST_US, PAUSE_MAX_US } };
    tenrec_status st;

    do {
        st = wait_for_calls(w, deadline_ns, err);
        if (st == TENREC_OK)
            st = termination_count(w, deadline_ns, ret, err);
    } while (st == TENREC_OK && (ret->calls_finished != ret->calls_made ||
                                 (ret->one_way_ended < ret->one_way_sent &&
                                  wait_for_one_way_calls(w, ret, &still, deadline_ns))));
    return st;
}

static uint32_t left_ms(uint64_t deadline_ns)
{
    const int ms = clock_left_ms(deadline_ns);

    return ms < 0 ? UINT32_MAX : (uint32_t)ms;
}

/* Together with the other members of a static group. */
static tenrec_status part_static(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct sums s;
    tenrec_status st = termination_await(w, deadline_ns, &s, err);

    if (st == TENREC_OK && s.references > 0) {
        /* No message is in flight in the group: a fork that has not arrived never will. */
        rrefs_release(w, true);
        st = termination_await(w, deadline_ns, &s, err);
    }
    if (st == TENREC_OK && is_quiet(&s) && s.references == 0)
        membership_set_left(group_of(w)->membership);
    return st;
}

static tenrec_status part_dynamic(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st = wait_for_calls(w, deadline_ns, err);

    if (st == TENREC_OK) {
        rrefs_release(w, false);
        st = wait_for_calls(w, deadline_ns, err);
    }
    if (st != TENREC_OK)
        return st;
    monitor_announce_leaving(w, deadline_ns);
    /* Requests that were sent before the others knew; their functions may make calls. */
    st = active_calls_wait(&w->calls->active_calls, deadline_ns, err);
    if (st == TENREC_OK)
        st = wait_for_calls(w, deadline_ns, err);
    if (st == TENREC_OK)
        st = chain_drain(w->chain, left_ms(deadline_ns), err);
    return st == TENREC_OK ? monitor_depart(w, deadline_ns, err) : st;
}

tenrec_status worker_part(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    if (group_of(w)->monitor)
        return part_dynamic(w, deadline_ns, err);
    if (worker_visits(w)) /* a visitor and the group do not wait for each other */
        return wait_for_calls(w, deadline_ns, err);
    return part_static(w, deadline_ns, err);
}
