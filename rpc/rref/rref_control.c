/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/rref/rref.h"

#include <stddef.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/config/config.h"
#include "rpc/call/calls.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/codec.h"

enum { NUMBERS_MAX = 8, NUMBERS_PAYLOAD_MAX = 128, CONTROL_NUMBERS = 4 };

/* ---- payloads of numbers -------------------------------------------------------- */

tenrec_status rref_numbers_write(int32_t type, const int64_t *number, size_t n,
                                 struct tenrec_msg **ret, tenrec_error *err)
{
    struct tenrec_value item[NUMBERS_MAX], array;

    for (size_t i = 0; i < n; i++)
        item[i] = tenrec_value_int(number[i]);
    array = tenrec_value_array(item, n);
    return codec_write_value(&array, type, ret, err);
}

tenrec_status rref_numbers_read(const struct tenrec_msg *msg, size_t n, int64_t *ret,
                                tenrec_error *err)
{
    struct tenrec_value *v = NULL;
    tenrec_status st = TENREC_OK;

    /* A caller that is no member may send such messages of any size. */
    if (msg->payload_len > NUMBERS_PAYLOAD_MAX)
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "malformed message: expected %zu numbers, not %llu bytes", n,
                         (unsigned long long)msg->payload_len);
    if (st == TENREC_OK)
        st = codec_read_value(msg, &v, err);
    if (st == TENREC_OK && (v->type != TENREC_VALUE_ARRAY || v->n != n))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: expected %zu numbers", n);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (v->u.array[i].type != TENREC_VALUE_INT || v->u.array[i].u.integer < 0)
            st = tenrec_fail(err, TENREC_EPROTOCOL,
                             "malformed message: item %zu is not a number of 0 or more", i);
        else
            ret[i] = v->u.array[i].u.integer;
    }
    tenrec_value_drop(v);
    return st;
}

/* ---- sending ------------------------------------------------------------------------ */

static const char *job_name(const struct rref_job *job)
{
    switch (job->type) {
    case TENREC_MSG_RREF_FORK_REQUEST:
        return "RREF_FORK_REQUEST";
    case TENREC_MSG_RREF_CHILD_ACCEPT:
        return "RREF_CHILD_ACCEPT";
    default:
        return "RREF_USER_DELETE";
    }
}

/* Returns true if the recipient is dead, so the failure is expected. */
static bool job_peer_is_lost(const struct rref_job *job, const struct tenrec_worker *w)
{
    return atomic_load(&job->most) == 1 || contact_refused(w, job->to);
}

/* `w` is NULL if the worker has stopped: then the job was not counted either. */
static void job_end(struct rref_job *job, struct tenrec_worker *w, const tenrec_error *why)
{
    struct rref_context *ctx = job->ctx;
    const bool counted = job->tries > 0;
    struct rref_acts acts = { 0 };
    tenrec_error reported;

    if (why) {
        reported = *why;
        if (job->tries > 1)
            tenrec_error_prefix(&reported, "abandoned after %u tries", job->tries);
        if (w && atomic_load(&w->state) == WORKER_RUNNING)
            log_line(job_peer_is_lost(job, w) ? TENREC_LOG_DEBUG : TENREC_LOG_WARN, w->self.name,
                     "%s to '%s': %s", job_name(job), rref_context_name(ctx, job->to),
                     reported.text);
    }
    rref_job_done(job, why ? &reported : NULL, &acts);
    rref_acts_run(&acts);
    if (w && counted)
        call_outstanding_end(w);
}

uint64_t rref_gap_ns(uint32_t first_ms, uint32_t tries)
{
    double ms = first_ms;

    for (uint32_t i = 2; i < tries; i++)
        ms *= 1.5;
    return (uint64_t)(ms * 1e6);
}

/* A member of a dynamic group that does not know this worker yet takes no control messages of it.
 */
static bool is_final(const struct tenrec_worker *w, tenrec_status why)
{
    return why == TENREC_ENOTFOUND || why == TENREC_EPEER_UNKNOWN || why == TENREC_ESHUTDOWN ||
           why == TENREC_ECANCELED || why == TENREC_EINVAL || why == TENREC_EPROTOCOL ||
           (why == TENREC_EUNSUPPORTED && (!w->peers.lives || worker_visits(w)));
}

/* Queues the job for its next try. Returns false if the session is closed. */
static bool job_postpone(struct rref_job *job)
{
    struct rref_context *ctx = job->ctx;
    struct rref_job **at;
    uint64_t due_ns = job->due_ns;
    bool open;

    pthread_mutex_lock(&ctx->lock);
    open = ctx->open;
    if (open) {
        for (at = &ctx->postponed; *at && (*at)->due_ns <= due_ns; at = &(*at)->next)
            ;
        job->next = *at;
        *at = job;
    }
    pthread_mutex_unlock(&ctx->lock);
    return open;
}

static void job_failed(struct rref_job *job, struct tenrec_worker *w, const tenrec_error *why)
{
    struct rref_context *ctx = job->ctx;
    uint64_t due_ns = job->due_ns;

    if (contact_failed(w, job->to, why) || job->tries >= job->most || is_final(w, why->code) ||
        atomic_load(&w->state) != WORKER_RUNNING || !job_postpone(job))
        job_end(job, w, why);
    else
        loop_timer_arm(ctx->timer, due_ns);
}

static void job_answered(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why)
{
    struct rref_job *job = (struct rref_job *)(void *)h;

    if (why)
        job_failed(job, w, why);
    else
        job_end(job, w, NULL);
}

static tenrec_status job_send(struct rref_job *job, struct tenrec_worker *w, tenrec_error *err)
{
    struct rref_fork named = { job->id, job->fork, w->self.id, w->self.id };
    int64_t number[CONTROL_NUMBERS];
    struct call_spec spec = { .to = job->to, .function = job_name(job), .hook = &job->hook };
    struct tenrec_future *f;
    struct tenrec_msg *msg;
    tenrec_status st = rref_linked_out(w, job->to, &named, err);

    memcpy(number, &named, sizeof number); /* both ids, which it begins with */
    if (st == TENREC_OK)
        st = rref_numbers_write(job->type, number, CONTROL_NUMBERS, &msg, err);
    if (st != TENREC_OK)
        return st;
    msg->key_len = (uint32_t)msg->payload_len;
    msg->flags |= TENREC_MSG_CONTROL;
    call_begin_now(w, &spec, TENREC_TIMEOUT_DEFAULT, NULL);
    st = call_send(w, &spec, msg, &f, err);
    if (st == TENREC_OK)
        tenrec_future_drop(f);
    return st;
}

static void job_try(struct rref_job *job);

static void job_ready(struct tenrec_worker *w, struct ask *a)
{
    (void)w;
    job_try((struct rref_job *)(void *)((char *)a - offsetof(struct rref_job, ask)));
}

/* Returns true if the sender of the reference has a newer view than this worker: the job continues
 * once the views are equal, at the latest after the time of a call. */
static bool job_awaits_view(struct rref_job *job, struct tenrec_worker *w)
{
    int64_t limit_ms = TENREC_TIMEOUT_DEFAULT;

    if (job->ask.version == 0)
        return false;
    job->ask.ready = job_ready;
    return call_deadline(w, &limit_ms, &job->ask.deadline_ns, NULL) == TENREC_OK &&
           w->calls->view_wait(w, &job->ask);
}

/* `job` may be freed afterwards. */
static void job_try(struct rref_job *job)
{
    struct tenrec_worker *w;
    tenrec_error why;

    if (rref_context_enter(job->ctx, &w, &why) != TENREC_OK) {
        job_end(job, NULL, &why);
        return;
    }
    if (job_awaits_view(job, w)) {
        worker_leave(w);
        return;
    }
    if (job->tries++ == 0)
        call_outstanding_begin(w);
    job->hook.done = job_answered;
    job->due_ns = clock_now_ns() + rref_gap_ns(job->ctx->gap_ms, job->tries);
    if (contact_refused(w, job->to)) {
        tenrec_fail(&why, TENREC_EPEER_LOST, "no process listens at its address");
        job_end(job, w, &why);
    } else if (job_send(job, w, &why) != TENREC_OK) {
        job_failed(job, w, &why);
    }
    worker_leave(w);
}

void rref_acts_run(struct rref_acts *a)
{
    struct rref_acts now = *a;
    struct rref_job *job, *next_job;
    struct rref_waiter *w, *next_waiter;
    struct tenrec_rref *r, *next;

    *a = (struct rref_acts){ 0 };
    for (job = now.jobs; job; job = next_job) {
        next_job = job->next;
        job->next = NULL;
        if (job->ctx->send)
            job->ctx->send(job);
        else
            job_try(job);
    }
    for (w = now.ready; w; w = next_waiter) {
        next_waiter = w->next;
        w->ready(w, w->why);
    }
    for (r = now.dead; r; r = next) {
        next = r->next;
        rref_free(r);
    }
}

/* ---- the timer ------------------------------------------------------------------------- */

static struct rref_job *job_next_due(struct rref_context *ctx, uint64_t now_ns, uint64_t *next_ns)
{
    struct rref_job *job;

    pthread_mutex_lock(&ctx->lock);
    job = ctx->postponed;
    if (job && job->due_ns > now_ns) {
        *next_ns = job->due_ns;
        job = NULL;
    } else if (job) {
        ctx->postponed = job->next;
        job->next = NULL;
    }
    pthread_mutex_unlock(&ctx->lock);
    return job;
}

static void on_timer(void *arg)
{
    struct rref_context *ctx = arg;
    uint64_t now_ns = clock_now_ns(), next_job = CLOCK_NEVER, next_wait;
    struct rref_acts acts = { 0 };
    struct rref_job *job;

    while ((job = job_next_due(ctx, now_ns, &next_job)))
        job_try(job);
    next_wait = rref_expire(ctx, now_ns, &acts);
    rref_acts_run(&acts);
    if (next_job < next_wait)
        next_wait = next_job;
    if (next_wait != CLOCK_NEVER)
        loop_timer_arm(ctx->timer, next_wait);
}

void rrefs_arm(struct rref_context *ctx, uint64_t deadline_ns)
{
    struct tenrec_worker *w;

    if (deadline_ns == CLOCK_NEVER || rref_context_enter(ctx, &w, NULL) != TENREC_OK)
        return;
    loop_timer_arm(ctx->timer, deadline_ns);
    worker_leave(w);
}

/* ---- receiving ---------------------------------------------------------------------------- */

static tenrec_status rref_control_handle(struct tenrec_worker *w, tenrec_peer from,
                                         const struct tenrec_msg *msg, tenrec_error *err)
{
    struct rref_context *ctx = rref_context_of(w);
    struct rref_fork f = { .owner = 0 };
    int64_t n[CONTROL_NUMBERS];
    struct rref_acts acts = { 0 };
    tenrec_status st = rref_numbers_read(msg, CONTROL_NUMBERS, n, err);

    if (st == TENREC_OK && from < 0)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "only members of the group hold references");
    if (st != TENREC_OK)
        return st;
    f.id = (struct rref_id){ n[0], n[1] };
    f.fork = (struct rref_id){ n[2], n[3] };
    st = rref_linked_in(w, from, &f, err);
    if (st != TENREC_OK)
        return st;
    if (msg->type == TENREC_MSG_RREF_FORK_REQUEST)
        st = rref_fork_requested(ctx, f.id, f.fork, from, err);
    else if (msg->type == TENREC_MSG_RREF_CHILD_ACCEPT)
        rref_child_arrived(ctx, f.fork, from, &acts);
    else
        rref_user_deleted(ctx, f.id, f.fork, from, &acts);
    rref_acts_run(&acts);
    return st;
}

void rrefs_control_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    tenrec_error why;

    if (rref_control_handle(w, from, msg, &why) == TENREC_OK)
        answer_value(w, from, msg->id, &msg->route, TENREC_MSG_RREF_ACK, NULL);
    else
        answer_error(w, from, msg->id, &msg->route, codec_is_cbor(msg), &why);
    msg->release(msg);
}

/* ---- a session ---------------------------------------------------------------------------------
 */

tenrec_status rrefs_open(struct tenrec_worker *w, const struct tenrec_member *member, size_t n,
                         uint64_t incarnation, tenrec_error *err)
{
    const struct rref_setup s = { .worker = w,
                                  .member = member,
                                  .n = n,
                                  .room = w->peers.room,
                                  .me = w->self.id,
                                  .session = incarnation,
                                  .gap_ms = (uint32_t)w->settings->rref_retry_gap_ms };
    struct rrefs *all = rrefs_of(w);
    tenrec_status st = rref_context_new(&s, &all->context, err);

    if (st == TENREC_OK)
        st = loop_timer_new(w->loop, on_timer, all->context, &all->context->timer, err);
    return st;
}

void rrefs_stop(struct tenrec_worker *w)
{
    struct rref_context *ctx = rref_context_of(w);
    struct rref_job *job, *next;
    struct rref_acts acts = { 0 };

    if (!ctx)
        return;
    rref_context_close(ctx, &acts);
    rref_acts_run(&acts);
    pthread_mutex_lock(&ctx->lock);
    job = ctx->postponed;
    ctx->postponed = NULL;
    pthread_mutex_unlock(&ctx->lock);
    for (; job; job = next) {
        next = job->next;
        job_end(job, w, &rref_shut_down);
    }
}

void rrefs_drop(struct tenrec_worker *w)
{
    struct rref_context *ctx = rref_context_of(w);

    if (!ctx)
        return;
    loop_timer_drop(ctx->timer);
    ctx->timer = NULL;
    rref_context_drop(ctx);
    rrefs_of(w)->context = NULL;
}

bool rrefs_need(struct tenrec_worker *w, tenrec_peer peer)
{
    return rref_context_of(w) && rref_context_needs(rref_context_of(w), peer);
}

size_t rrefs_lost(struct tenrec_worker *w, tenrec_peer peer, bool report, const tenrec_error *why)
{
    const struct rrefs *all = rrefs_of(w);
    struct rref_released n;
    struct rref_acts acts = { 0 };
    const uint32_t forks = forks_seen;
    tenrec_rrefs_released_fn *fn;
    struct future_scope *scope;
    void *arg;

    if (peer < 0)
        return 0;
    n = rref_peer_lost(all->context, peer, why, &acts);
    rref_acts_run(&acts);
    rrefs_arm(all->context, clock_now_ns());
    pthread_mutex_lock(&w->lock);
    fn = all->released;
    arg = all->released_arg;
    pthread_mutex_unlock(&w->lock);
    if (!report || !fn || n.forks == 0)
        return n.jobs;
    scope = thread_lend();
    fn(w, peer, n.forks, n.freed, arg);
    forks_check(forks, "a callback for released references");
    thread_back(scope);
    return n.jobs;
}
