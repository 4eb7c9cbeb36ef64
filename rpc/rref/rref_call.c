/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/rref/rref.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/value.h"

/* A reference in the arguments, for which the call waits. */
struct call_waiter {
    struct rref_waiter waiter; /* first */
    struct tenrec_call *call;
};

struct rref_call {
    struct rref_owner *made;    /* of a creation; held until its value is made */
    struct tenrec_value *kept;  /* owns; result of the creation's function */
    struct tenrec_rref *on;     /* held: the first argument is its value */
    struct call_waiter *waiter; /* owns */
    size_t n;
    atomic_size_t left; /* waiters, and the thread that starts them */
    atomic_flag failed;
    tenrec_error why; /* written by the thread that set failed */
};

static struct rref_call *rref_call_new(void)
{
    struct rref_call *r = memory_new(1, sizeof *r);

    if (r)
        atomic_flag_clear(&r->failed);
    return r;
}

/* ---- waiting for the arguments ----------------------------------------------------- */

/* Counts the references, and lists them in `at` unless that is NULL. */
static size_t args_list_refs(const struct tenrec_value *v, size_t n, struct call_waiter *at)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (v[i].type == TENREC_VALUE_RREF && at)
            at[sum].waiter.ref = v[i].u.rref;
        if (v[i].type == TENREC_VALUE_RREF)
            sum++;
        else if (v[i].type == TENREC_VALUE_ARRAY)
            sum += args_list_refs(v[i].u.array, (size_t)v[i].n, at ? at + sum : NULL);
        else if (v[i].type == TENREC_VALUE_MAP)
            for (uint64_t k = 0; k < v[i].n; k++)
                sum += args_list_refs(&v[i].u.map[k].value, 1, at ? at + sum : NULL);
    }
    return sum;
}

/* All references are resolved: replaces the first argument by the value that is called on. */
static void args_put_value(struct tenrec_call *c)
{
    struct tenrec_value *first = (struct tenrec_value *)(uintptr_t)c->in.args;

    if (c->in.n == 0 || first->type != TENREC_VALUE_RREF || !(first->flags & CODEC_DEREF))
        return;
    c->refs->on = first->u.rref;
    *first = *rref_owner_of(c->refs->on)->value;
    c->in.borrowed = 1;
    if (unlikely(rref_owner_of(c->refs->on)->streams != NULL))
        value_take_on(first, rref_owner_of(c->refs->on)->streams, c->streams, NULL);
}

static void args_count_down(struct tenrec_call *c)
{
    struct rref_call *r = c->refs;
    bool failed;

    if (atomic_fetch_sub(&r->left, 1) != 1)
        return;
    failed = atomic_flag_test_and_set(&r->failed);
    if (!failed)
        args_put_value(c);
    serve_start(c, failed ? &r->why : NULL);
}

static void rref_call_fail(struct rref_call *r, const tenrec_error *why)
{
    if (!atomic_flag_test_and_set(&r->failed))
        r->why = *why;
}

static void args_ready(struct rref_waiter *w, const tenrec_error *why)
{
    struct tenrec_call *c = ((struct call_waiter *)(void *)w)->call;
    const struct tenrec_value *first = c->in.args;
    const bool called_on =
        first->type == TENREC_VALUE_RREF && first->u.rref == w->ref && (first->flags & CODEC_DEREF);

    /* If a value of ours could not be made, only its users fail, not a call that passes it on. */
    if (why && (called_on || !w->ref->is_owner || why != w->ref->error))
        rref_call_fail(c->refs, why);
    args_count_down(c);
}

static tenrec_status args_wait(struct tenrec_call *c, tenrec_error *err)
{
    struct rref_call *r = c->refs;
    uint64_t deadline_ns = c->deadline_ns ? c->deadline_ns : CLOCK_NEVER;

    r->n = args_list_refs(c->in.args, c->in.n, NULL);
    atomic_store(&r->left, r->n + 1);
    if (r->n > 0) {
        r->waiter = memory_new(r->n, sizeof *r->waiter);
        if (!r->waiter)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory to wait for %zu references", r->n);
        args_list_refs(c->in.args, c->in.n, r->waiter);
    }
    for (size_t i = 0; i < r->n; i++) {
        struct rref_waiter *w = &r->waiter[i].waiter;
        r->waiter[i].call = c;
        w->from = c->from;
        w->deadline_ns = deadline_ns;
        w->ready = args_ready;
        if (rref_wait(w->ref, w))
            args_ready(w, w->why);
    }
    if (r->n > 0)
        rrefs_arm(rref_context_of(c->worker), deadline_ns);
    args_count_down(c);
    return TENREC_OK;
}

/* ---- creations ---------------------------------------------------------------------------- */

/* Returns true if both ids are from the worker that creates the value, as they must. */
static bool creation_is_from(const struct codec_creation *ids, tenrec_peer from)
{
    return from >= 0 && ids->id.on == from && ids->fork.on == from;
}

/* Gives the ids of a creation the names that this worker has for its workers. */
static tenrec_status creation_named(const struct tenrec_worker *w, tenrec_peer from,
                                    struct codec_creation *ids, tenrec_error *err)
{
    struct rref_fork f = { .id = ids->id, .fork = ids->fork };
    tenrec_status st = rref_linked_in(w, from, &f, err);

    *ids = (struct codec_creation){ f.id, f.fork };
    return st;
}

static tenrec_status creation_begin(struct tenrec_call *c, tenrec_error *err)
{
    struct codec_creation *made = &c->in.creation;
    tenrec_status st;

    if (c->from < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "only members of the group may create remote references here");
    st = creation_named(c->worker, c->from, made, err);
    if (st != TENREC_OK)
        return st;
    if (!creation_is_from(made, c->from))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "worker %d creates a value under ids of workers %lld and %lld", c->from,
                           (long long)made->id.on, (long long)made->fork.on);
    st = rref_begin_making(rref_context_of(c->worker), made->id, made->fork, c->from,
                           &c->refs->made, err);
    c->repeated = st == TENREC_EEXIST;
    return c->repeated ? TENREC_OK : st;
}

/* Keeps the value (taken), or `why` it was not made. Returns the answer; NULL without memory. */
static struct tenrec_msg *creation_end(struct rref_owner *o, const struct codec_creation *ids,
                                       tenrec_peer from, struct tenrec_value *value,
                                       const tenrec_error *why)
{
    /* The caller does not read them. */
    const int64_t number[] = { ids->id.on, ids->id.local, ids->fork.on, ids->fork.local };
    struct tenrec_msg *answer = NULL;
    struct rref_acts acts = { 0 };

    rref_made(o, ids->fork, from, value, why, &acts);
    rref_acts_run(&acts);
    rref_numbers_write(TENREC_MSG_REMOTE_RET, number, 4, &answer, NULL);
    return answer;
}

static void rref_call_refused(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                              const struct codec_creation *sent, const tenrec_error *why)
{
    struct codec_creation named = *sent, *ids = &named;
    struct rref_owner *o;
    tenrec_error reported = *why;

    rrefs_forget(w, from, msg);
    if (creation_named(w, from, ids, NULL) != TENREC_OK || !creation_is_from(ids, from) ||
        rref_begin_making(rref_context_of(w), ids->id, ids->fork, from, &o, NULL) != TENREC_OK) {
        answer_error(w, from, msg->id, &msg->route, true, why);
    } else {
        peers_blame(&w->peers, w->self.id, &reported);
        answer_send(w, from, msg->id, &msg->route, creation_end(o, ids, from, NULL, &reported),
                    NULL);
    }
    msg->release(msg);
}

static void rref_call_begin(struct tenrec_call *c)
{
    const bool creates = c->request->type == TENREC_MSG_REMOTE_CALL;
    tenrec_status st = TENREC_OK;
    tenrec_error why;

    if (creates)
        st = creation_begin(c, &why);
    if (st != TENREC_OK || c->repeated)
        rrefs_forget(c->worker, c->from, c->request);
    else if (c->in.refers)
        st = rrefs_take(c->worker, c->from, c->in.args, c->in.n, true, &why);
    if (st == TENREC_OK && c->repeated)
        tenrec_call_finish(c, NULL);
    else if (st == TENREC_OK)
        st = args_wait(c, &why);
    if (st != TENREC_OK)
        serve_start(c, &why);
}

static bool rref_call_keep(struct tenrec_call *c, const struct tenrec_value *value,
                           tenrec_status *ret, tenrec_error *err)
{
    const struct tenrec_value nil = tenrec_value_nil();
    struct tenrec_value *copy;

    if (!c->refs->made)
        return false;
    *ret = tenrec_value_copy(value ? value : &nil, &copy, err);
    if (*ret == TENREC_OK) {
        tenrec_value_drop(c->refs->kept);
        c->refs->kept = copy;
    }
    return true;
}

static bool rref_call_complete(struct tenrec_call *c, const tenrec_error *why,
                               struct tenrec_msg **ret)
{
    struct rref_owner *o = c->refs->made;
    struct tenrec_value *kept;
    tenrec_error reported;
    tenrec_status st;

    if (!o)
        return false;
    if (!why && !c->refs->kept && rref_call_keep(c, NULL, &st, &reported) && st != TENREC_OK)
        why = &reported;
    if (why) {
        reported = *why;
        if (!c->refused)
            codec_mark_callee(&reported);
        peers_blame(&c->worker->peers, c->worker->self.id, &reported);
    }
    kept = c->refs->kept;
    c->refs->kept = NULL;
    c->refs->made = NULL;
    if (why) {
        tenrec_value_drop(kept);
        kept = NULL;
    }
    o->streams = streams_share(c->streams); /* not read before rref_made */
    *ret = creation_end(o, &c->in.creation, c->from, kept, why ? &reported : NULL);
    return true;
}

static void rref_call_end(struct tenrec_call *c)
{
    struct rref_call *r = c->refs;
    struct rref_acts acts = { 0 };

    if (r->made) { /* the worker stops: no answer is sent */
        rref_made(r->made, c->in.creation.fork, c->from, NULL, &rref_shut_down, &acts);
        rref_acts_run(&acts);
    }
    tenrec_rref_drop(r->on);
    tenrec_value_drop(r->kept);
    free(r->waiter);
    free(r);
    c->refs = NULL;
}

const struct served_refs_ops rref_calls = {
    .make = rref_call_new,
    .begin = rref_call_begin,
    .refused = rref_call_refused,
    .keep = rref_call_keep,
    .complete = rref_call_complete,
    .end = rref_call_end,
};

/* ---- fetches ----------------------------------------------------------------------------------
 */

enum { FETCH_NUMBERS = 5 };

struct fetch {
    struct rref_waiter waiter; /* first */
    struct tenrec_worker *w;
    tenrec_peer from;
    int64_t id;
    struct tenrec_route route;
};

/* Sets the target devices of the tensors. Releases msg on failure. */
static tenrec_status fetch_map_tensors(struct fetch *f, struct rref_owner *o,
                                       struct tenrec_msg *msg, tenrec_error *err)
{
    struct streams *streams;
    tenrec_status st;

    if (msg->n_tensors == 0)
        return TENREC_OK;
    streams = o->streams ? streams_fork(o->streams) : NULL;
    st = devices_answer(f->w, f->from, streams, msg, err);
    streams_drop(streams);
    if (st == TENREC_OK)
        return st;
    peers_blame(&f->w->peers, f->w->self.id, err);
    msg->release(msg);
    return st;
}

/* Releases the value before the answer is sent, so a caller that checks for leaks on receipt finds
 * none. Inside the worker. */
static void fetch_send(struct fetch *f, struct tenrec_rref *r, const tenrec_error *why)
{
    struct tenrec_msg *msg = NULL;
    struct transfer_out out;
    tenrec_error reported;

    transfer_out_init(&out, f->w, f->from);
    if (why)
        reported = *why;
    else if (codec_write_value_refs(rref_owner_of(r)->value, TENREC_MSG_RREF_FETCH_RET, &out.refs,
                                    &msg, &reported) != TENREC_OK ||
             fetch_map_tensors(f, rref_owner_of(r), msg, &reported) != TENREC_OK)
        why = &reported;
    transfer_out_finish(&out);
    tenrec_rref_drop(r);
    if (!why) {
        answer_send(f->w, f->from, f->id, &f->route, msg, out.transfer);
        return;
    }
    transfer_end(f->w, out.transfer, TRANSFER_REFUSED);
    answer_error(f->w, f->from, f->id, &f->route, true, &reported);
}

static void fetch_answer(struct rref_waiter *waiter, const tenrec_error *why)
{
    struct fetch *f = (struct fetch *)(void *)waiter;

    rref_fetch_end(waiter->ref->ctx, f->from);
    if (worker_enter(f->w, NULL) == TENREC_OK) {
        fetch_send(f, waiter->ref, why);
        worker_leave(f->w);
    } else {
        tenrec_rref_drop(waiter->ref);
    }
    free(f);
}

static tenrec_status fetch_begin(struct tenrec_worker *w, tenrec_peer from,
                                 const struct tenrec_msg *msg, tenrec_error *err)
{
    int64_t n[FETCH_NUMBERS];
    struct rref_fork named = { .owner = 0 };
    struct rref_owner *o;
    struct fetch *f;
    uint64_t deadline_ns;
    tenrec_status st = rref_numbers_read(msg, FETCH_NUMBERS, n, err);

    if (st == TENREC_OK && from < 0)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "only members of the group hold references");
    if (st != TENREC_OK)
        return st;
    named.id = (struct rref_id){ n[0], n[1] };
    named.fork = (struct rref_id){ n[2], n[3] };
    st = rref_linked_in(w, from, &named, err);
    if (st != TENREC_OK)
        return st;
    f = memory_new(1, sizeof *f);
    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a fetch");
    st = rref_fetch_begin(rref_context_of(w), from, err);
    if (st == TENREC_OK) {
        st = rref_find(rref_context_of(w), named.id, named.fork, from, &o, err);
        if (st != TENREC_OK)
            rref_fetch_end(rref_context_of(w), from);
    }
    if (st != TENREC_OK) {
        free(f);
        return st;
    }
    deadline_ns = n[4] == 0 ? CLOCK_NEVER : clock_deadline_ms((uint64_t)n[4]);
    *f = (struct fetch){
        .waiter = { .deadline_ns = deadline_ns, .from = from, .ready = fetch_answer },
        .w = w,
        .from = from,
        .id = msg->id,
        .route = msg->route
    };
    if (rref_wait(&o->ref, &f->waiter))
        fetch_answer(&f->waiter, f->waiter.why);
    else
        rrefs_arm(rref_context_of(w), deadline_ns);
    return TENREC_OK;
}

void rref_fetch_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    tenrec_error why;

    if (fetch_begin(w, from, msg, &why) != TENREC_OK)
        answer_error(w, from, msg->id, &msg->route, codec_is_cbor(msg), &why);
    msg->release(msg);
}
