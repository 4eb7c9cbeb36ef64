/* SPDX-License-Identifier: Apache-2.0 */
#include "top/view.h"

#include "core/base/clock.h"
#include "group/meeting/meeting.h"
#include "group/meeting/membership.h"
#include "rpc/future/worker.h"
#include "rpc/worker/worker.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/future.h>
#include <time.h>

enum { STORE_MS = 500, LOST_SHOWN_S = 300 };

/* ---- the members ---------------------------------------------------------------- */

tenrec_status sampler_start(struct sampler *s, tenrec_error *err)
{
    return outside_open(&s->outside, err);
}

void sampler_finish(struct sampler *s)
{
    outside_close(&s->outside);
    s->outside.worker = NULL;
    sample_finish(&s->last);
}

/* A worker that has attached knows the members of that time. */
static tenrec_status sampler_reopen(struct sampler *s, uint64_t until_ns, tenrec_error *err)
{
    struct outside fresh = s->outside;
    const int left = clock_left_ms(until_ns);
    tenrec_status st;

    fresh.worker = NULL;
    fresh.command = NULL; /* the sample reports a store that does not answer */
    fresh.limit_ms = left > 0 ? (uint64_t)left : 1;
    st = outside_open(&fresh, err);
    if (st == TENREC_OK) {
        outside_close(&s->outside);
        s->outside.worker = fresh.worker;
    } else {
        outside_close(&fresh);
    }
    return st;
}

static bool sampler_all_gone(const struct sampler *s)
{
    for (size_t i = 0; i < s->last.n; i++)
        if (s->last.worker[i].state == SAMPLE_UP || s->last.worker[i].state == SAMPLE_JOINING)
            return false;
    return s->last.n > 0;
}

/* Follows the changes of the group: the list of a dynamic one; a static group that ended may have
 * started again. *died: the lives that were found dead. */
static tenrec_status sampler_follow(struct sampler *s, uint64_t until_ns,
                                    struct membership_view *now, tenrec_error *err)
{
    struct membership *m = group_of(s->outside.worker)->membership;
    static const char *const none[] = { "tenrec" };
    bool found;
    tenrec_status st;

    if (!m->rendezvous->dynamic) {
        st = tenrec_store_check(m->rendezvous->store, none, 1, STORE_MS, &found, err);
        return st == TENREC_OK && sampler_all_gone(s) ? sampler_reopen(s, until_ns, err) : st;
    }
    st = membership_list_read(&m->rendezvous->member_list, clock_deadline_ms(STORE_MS), now, err);
    if (st == TENREC_OK && now->version != m->view.version)
        st = sampler_reopen(s, until_ns, err);
    return st;
}

/* ---- the workers ---------------------------------------------------------------- */

/* The two calls to a worker. */
struct asked {
    struct tenrec_future *info, *metrics;
};

static void sampler_ask(struct sampler *s, const char *to, struct asked *ret, uint64_t until_ns)
{
    const int left = clock_left_ms(until_ns);
    const struct tenrec_call_options call = { .size = sizeof call,
                                              .timeout_ms = left > 0 ? left : 1 };

    (void)tenrec_rpc_async(s->outside.worker, to, "tenrec.debug_info", NULL, 0, &call, &ret->info,
                           NULL);
    (void)tenrec_rpc_async(s->outside.worker, to, "tenrec.metrics", NULL, 0, &call, &ret->metrics,
                           NULL);
}

static tenrec_status sampler_await(struct tenrec_future *f, uint64_t until_ns, tenrec_error *err)
{
    const int left = clock_left_ms(until_ns);

    if (!f)
        return tenrec_fail(err, TENREC_ECONNECT, "cannot be called");
    return tenrec_future_wait(f, left > 0 ? left : 1, err);
}

static void worker_explain(struct sampler *s, struct sample_worker *w, const tenrec_error *err)
{
    const uint64_t until_ns = clock_deadline_ms(s->store_away ? 1 : STORE_MS);
    const char *absent = membership_absence(group_of(s->outside.worker)->membership, w->id,
                                            until_ns, w->why, sizeof w->why);

    if (member_process_is_stopped(&w->process)) {
        w->state = SAMPLE_STOPPED;
        return;
    }
    if (!absent)
        snprintf(w->why, sizeof w->why, "%.*s", (int)sizeof w->why - 1, err->text);
    if (absent || err->code == TENREC_EPEER_LOST || err->code == TENREC_ECONNECT)
        w->state = SAMPLE_LOST;
    else
        w->state = SAMPLE_SILENT;
}

static void worker_take(struct sampler *s, struct sample_worker *w, const struct asked *asked,
                        uint64_t until_ns)
{
    const struct sample_worker *before = sample_find(&s->last, w->name, w->id);
    tenrec_error err;
    tenrec_status st = sampler_await(asked->info, until_ns, &err);

    if (st == TENREC_OK)
        st = sampler_await(asked->metrics, until_ns, &err);
    if (st == TENREC_OK &&
        (!reading_take_info(&w->reading, tenrec_future_value(asked->info)) ||
         !reading_take_metrics(&w->reading, tenrec_future_value(asked->metrics))))
        st = tenrec_fail(&err, TENREC_EPROTOCOL, "malformed answer");
    w->reading.answered = st == TENREC_OK;
    if (st == TENREC_OK)
        w->state = SAMPLE_UP;
    else
        worker_explain(s, w, &err);
    if (w->state == SAMPLE_SILENT && group_of(s->outside.worker)->membership->rendezvous->dynamic &&
        (!before || before->state == SAMPLE_JOINING))
        w->state = SAMPLE_JOINING;
    w->since_ns = before && before->state == w->state ? before->since_ns : clock_now_ns();
}

static tenrec_status sample_ask_all(struct sampler *s, struct sample *ret, uint64_t until_ns,
                                    tenrec_error *err)
{
    struct asked *asked = calloc(ret->n ? ret->n : 1, sizeof *asked);

    if (!asked)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", ret->n);
    for (size_t i = 0; i < ret->n; i++)
        sampler_ask(s, ret->worker[i].name, &asked[i], until_ns);
    for (size_t i = 0; i < ret->n; i++) {
        worker_take(s, &ret->worker[i], &asked[i], until_ns);
        tenrec_future_drop(asked[i].info);
        tenrec_future_drop(asked[i].metrics);
    }
    free(asked);
    return TENREC_OK;
}

/* ---- one sample ------------------------------------------------------------------ */

/* The group has removed it: it is lost, or stopped as long as its process is. */
static void worker_gone(struct sample_worker *w)
{
    const enum sample_state state =
        member_process_is_stopped(&w->process) ? SAMPLE_STOPPED : SAMPLE_LOST;

    if (w->state != state)
        w->since_ns = clock_now_ns();
    w->state = state;
    if (state == SAMPLE_STOPPED)
        snprintf(w->why, sizeof w->why, "its process %lld is stopped, and the group removed it",
                 (long long)w->process.pid);
    else
        snprintf(w->why, sizeof w->why, "found dead by the group");
}

/* Members that are in the list no more: those that died stay in sight for a while. */
static void sample_add_gone(const struct sampler *s, struct sample *ret)
{
    const uint64_t now = clock_now_ns();

    for (size_t i = 0; i < s->last.n; i++) {
        const struct sample_worker *old = &s->last.worker[i];
        struct sample_worker *w = &ret->worker[ret->n];

        if (sample_find(ret, old->name, old->id) || old->state < SAMPLE_STOPPED ||
            now - old->since_ns > (uint64_t)LOST_SHOWN_S * 1000000000)
            continue;
        *w = *old;
        w->reading = (struct reading){ .n_series = 0 };
        if (w->state == SAMPLE_STOPPED)
            worker_gone(w);
        ret->n++;
    }
}

static void list_members(const struct membership *m, struct sample *ret)
{
    for (uint32_t i = 0; i < membership_world(m); i++) {
        struct sample_worker *w = &ret->worker[ret->n++];
        const struct member *one = &m->members->list[i];

        snprintf(w->name, sizeof w->name, "%s", one->name);
        snprintf(w->host, sizeof w->host, "%s", one->host ? one->host : "");
        w->id = one->rank;
        (void)membership_process(m, w->id, &w->process);
    }
}

/* Members that the group itself found dead are lost at once, also if no call of ours failed. */
static void sampler_mark_died(struct sampler *s, const struct membership_view *old,
                              const struct membership_view *now)
{
    for (size_t i = 0; i < old->n; i++) {
        const struct membership_view_gone *gone =
            membership_view_find_gone(now, old->entry[i].incarnation);
        struct sample_worker *w = sample_find(&s->last, old->entry[i].name, old->entry[i].id);

        if (!w || !gone || membership_view_find(now, old->entry[i].id, old->entry[i].incarnation))
            continue;
        if (gone->died && w->state != SAMPLE_LOST) {
            worker_gone(w);
        } else if (!gone->died) {
            w->state = SAMPLE_UP; /* it left, and is not shown any more */
        }
    }
}

static tenrec_status sampler_remember(struct sampler *s, const struct sample *of, tenrec_error *err)
{
    struct sample_worker *copy = calloc(of->n ? of->n : 1, sizeof *copy);

    if (!copy)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", of->n);
    for (size_t i = 0; i < of->n; i++) {
        copy[i] = of->worker[i];
        copy[i].reading = (struct reading){ .n_series = 0 };
    }
    free(s->last.worker);
    s->last.worker = copy;
    s->last.n = of->n;
    return TENREC_OK;
}

static void sample_stamp(const struct membership *m, struct sample *ret)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    ret->time = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    ret->at_ns = clock_now_ns();
    snprintf(ret->group, sizeof ret->group, "%s", membership_group(m));
    snprintf(ret->store, sizeof ret->store, "%s", membership_store_name(m));
}

tenrec_status sampler_take(struct sampler *s, struct sample *ret, tenrec_error *err)
{
    const uint64_t until_ns = clock_deadline_ms(s->interval_ms - s->interval_ms / 4);
    struct membership_view old = { .version = 0 }, now = { .version = 0 };
    struct membership *m = group_of(s->outside.worker)->membership;
    tenrec_status st = membership_view_copy(&m->view, &old, err);
    tenrec_error why;

    *ret = (struct sample){ .n = 0 };
    if (st != TENREC_OK)
        return st;
    s->store_away = sampler_follow(s, until_ns, &now, &why) != TENREC_OK;
    if (s->store_away)
        snprintf(ret->error, sizeof ret->error, "%.*s", (int)sizeof ret->error - 1, why.text);
    else if (old.version > 0)
        sampler_mark_died(s, &old, &now);
    m = group_of(s->outside.worker)->membership;
    sample_stamp(m, ret);
    ret->worker = calloc(membership_world(m) + s->last.n + 1, sizeof *ret->worker);
    if (!ret->worker) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %u workers", membership_world(m));
        goto done;
    }
    list_members(m, ret);
    st = sample_ask_all(s, ret, until_ns, err);
    if (st == TENREC_OK)
        sample_add_gone(s, ret);
    if (st == TENREC_OK)
        st = sampler_remember(s, ret, err);
done:
    membership_view_finish(&old);
    membership_view_finish(&now);
    return st;
}
