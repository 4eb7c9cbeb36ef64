/* SPDX-License-Identifier: Apache-2.0 */
/* torch_requests.c - calls of torch's workers, and their answers. A request is read and served on a
 * thread of the pool; meanwhile it waits, without a thread, for the references in its arguments. */
#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "rpc/call/serve.h"
#include "torch/member/pyobject.h"
#include "torch/member/torch_request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/message.h>
#include <unistd.h>

/* ---- answers ---------------------------------------------------------------------------- */

/* An answer in flight that may be refused. */
struct torch_answer {
    struct tenrec_torch_member *m;
    tenrec_peer to;
    struct tenrec_msg request; /* its id and route */
};

static void torch_answer_sent(void *arg, const tenrec_error *why)
{
    struct torch_answer *a = arg;

    if (answer_is_refused(why))
        torch_requests_fail(a->m, a->to, &a->request, why);
    free(a);
}

void torch_requests_answer(struct tenrec_torch_member *m, tenrec_peer from,
                           const struct tenrec_msg *request, struct tenrec_msg *msg)
{
    struct tenrec_done done = { NULL, NULL };
    struct torch_answer *a = answer_is_followed(msg) ? memory_new(1, sizeof *a) : NULL;

    if (a) {
        a->m = m;
        a->to = from;
        a->request = (struct tenrec_msg){ .id = request->id, .route = request->route };
        done = (struct tenrec_done){ torch_answer_sent, a };
    }
    msg->id = request->id;
    msg->route = request->route;
    msg->flags |= TENREC_MSG_CONTROL;
    tenrec_chain_send(m->chain, from, msg, done);
}

void torch_requests_fail(struct tenrec_torch_member *m, tenrec_peer from,
                         const struct tenrec_msg *request, const tenrec_error *why)
{
    char text[sizeof why->text + TENREC_NAME_MAX + 80];
    const int len = snprintf(text, sizeof text, "On WorkerInfo(id=%d, name=%s):\n%s: %s",
                             (int)m->id, m->name, tenrec_status_name(why->code), why->text);
    struct tenrec_msg *msg = tenrec_msg_new((uint64_t)len, 0);

    if (!msg) /* the caller's timeout tells it */
        return;
    msg->type = TENREC_MSG_EXCEPTION;
    memcpy(msg->payload, text, (size_t)len);
    torch_requests_answer(m, from, request, msg);
}

static void request_free(struct tenrec_torch_request *r)
{
    if (r->reply)
        r->reply->release(r->reply);
    outgoing_undo(&r->reply_refs);
    arrivals_finish(&r->refs);
    tenrec_value_drop(r->kept);
    message_tensors_finish(&r->tensors);
    arena_finish(&r->arena);
    r->msg->release(r->msg);
    free(r);
}

/* Keeps the value of a creation, or why there is none, and says that it is kept. */
static void request_made(struct tenrec_torch_request *r, const tenrec_error *why)
{
    const struct rref_id ids[] = { r->made->ref.id, r->made_fork };
    struct rref_acts acts = { 0 };
    struct tenrec_msg *msg;
    tenrec_error err;

    if (!why && request_is_script(r))
        reference_name(&r->made->ref, bytes_of_text(reference_type_of(r->kept)), r->name);
    rref_made(r->made, r->made_fork, r->from, why ? NULL : r->kept, why, &acts);
    if (!why)
        r->kept = NULL; /* taken */
    rref_acts_run(&acts);
    if (references_message(TENREC_MSG_REMOTE_RET, ids, 2, &msg, &err) == TENREC_OK)
        torch_requests_answer(r->member, r->from, r->msg, msg);
    else
        torch_requests_fail(r->member, r->from, r->msg, &err);
}

/* Answers, and frees the request. why: NULL: the function returned. */
static void request_end(struct tenrec_torch_request *r, const tenrec_error *why)
{
    if (r->made) {
        request_made(r, why);
    } else if (why) {
        torch_requests_fail(r->member, r->from, r->msg, why);
    } else {
        assert(r->reply); /* None, if the function returned nothing */
        torch_requests_answer(r->member, r->from, r->msg, r->reply);
        r->reply = NULL;
        outgoing_finish(&r->reply_refs);
    }
    request_free(r);
}

static tenrec_status request_keep(struct tenrec_torch_request *r, const struct tenrec_value *value,
                                  tenrec_error *err)
{
    struct tenrec_value *copy;
    tenrec_status st = tenrec_value_copy(value, &copy, err);

    if (st != TENREC_OK)
        return st;
    tenrec_value_drop(r->kept);
    r->kept = copy;
    return TENREC_OK;
}

tenrec_status tenrec_torch_request_return(struct tenrec_torch_request *r,
                                          const struct tenrec_value *value, tenrec_error *err)
{
    struct outgoing refs = { .ctx = r->member->refs, .to = r->from };
    struct pickler p = { .jit = request_is_script(r), .refs = &refs };
    struct tenrec_msg *msg;
    tenrec_status st;

    if (r->made)
        return request_keep(r, value, err);
    pickler_begin(&p);
    pickler_value(&p, value);
    pickler_end(&p);
    st = pickler_message(&p, p.jit ? TENREC_MSG_SCRIPT_RET : TENREC_MSG_RET, &msg, err);
    if (st != TENREC_OK) {
        outgoing_undo(&refs);
        return st;
    }
    if (r->reply)
        r->reply->release(r->reply);
    outgoing_undo(&r->reply_refs);
    r->reply = msg;
    r->reply_refs = refs;
    return TENREC_OK;
}

const struct tenrec_value *tenrec_torch_request_args(const struct tenrec_torch_request *r,
                                                     size_t *ret_n)
{
    *ret_n = r->n_args;
    return r->args;
}

/* ---- calling ---------------------------------------------------------------------------- */

/* The arguments are there. */
static tenrec_status request_call(struct tenrec_torch_request *r, tenrec_error *err)
{
    const pid_t process = getpid();
    const struct torch_function *f;
    bool known;
    tenrec_status st = method_request(r, &known, err);

    if (st != TENREC_OK || known)
        return st;
    if (r->made)
        reference_name(&r->made->ref, bytes_of_text(REFERENCE_OF_PYTHON), r->name);
    st = torch_functions_get(r->member, r->name, &f, err);
    if (st == TENREC_OK)
        st = f->fn(r, f->arg, err);
    if (getpid() != process)
        forks_end("a function");
    return st;
}

static void request_run_call(struct tenrec_torch_request *r)
{
    const struct tenrec_value none = tenrec_value_nil();
    tenrec_error err = { .code = TENREC_OK };
    tenrec_status st = request_call(r, &err);

    if (st == TENREC_OK && !r->reply && !r->kept)
        st = tenrec_torch_request_return(r, &none, &err);
    if (st != TENREC_OK && err.code == TENREC_OK)
        tenrec_fail(&err, st, "%s", tenrec_status_text(st));
    request_end(r, st == TENREC_OK ? NULL : &err);
}

static void request_refuse(struct tenrec_torch_request *r)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ESHUTDOWN, "the worker leaves the group");
    request_end(r, &why);
}

/* No thread is left for it. */
static void request_refuse_blocked(struct tenrec_torch_request *r)
{
    tenrec_error why;

    pool_refusal(r->member->pool, r->name ? r->name : "the function", &why);
    request_end(r, &why);
}

static void request_queue(struct tenrec_torch_request *r, void (*fn)(struct pool_task *t))
{
    tenrec_status st;

    r->task.fn = fn;
    st = pool_run(r->member->pool, &r->task);
    if (st == TENREC_EAGAIN)
        request_refuse_blocked(r);
    else if (st != TENREC_OK)
        request_refuse(r);
}

/* ---- waiting for references ------------------------------------------------------------------ */

/* All have been waited for. */
static void request_resume(struct pool_task *t)
{
    struct tenrec_torch_request *r = (struct tenrec_torch_request *)t;

    if (atomic_flag_test_and_set(&r->failed))
        request_end(r, &r->why);
    else if (t->refused)
        request_refuse_blocked(r);
    else
        request_run_call(r);
}

static void request_count_down(struct tenrec_torch_request *r)
{
    struct tenrec_torch_member *m = r->member;

    if (atomic_fetch_sub(&r->left, 1) != 1)
        return;
    pthread_mutex_lock(&m->lock);
    m->waiting--;
    m->waiting_bytes -= r->waiting_bytes;
    pthread_mutex_unlock(&m->lock);
    request_queue(r, request_resume);
}

static void request_ready(struct rref_waiter *w, const tenrec_error *why)
{
    struct tenrec_torch_request *r = ((struct request_waiter *)(void *)w)->request;
    /* A value that could not be made fails its users, not a call that passes it on. */
    const bool own = w->ref->is_owner && why == w->ref->error;

    if (why && !own && !atomic_flag_test_and_set(&r->failed))
        r->why = *why;
    request_count_down(r);
}

/* The bytes of its message, of what was made of it, and of its tensors. */
static uint64_t request_bytes(const struct tenrec_torch_request *r)
{
    uint64_t bytes = r->msg->payload_len + r->arena.bytes;

    for (size_t i = 0; i < r->tensors.n; i++)
        bytes += tenrec_tensor_bytes(r->tensors.tensor[i]);
    return bytes;
}

/* Counts the request among those that wait, unless there are too many, or they hold too much; a
 * single one may hold more. Returns false then. */
static bool request_enter_waiting(struct tenrec_torch_request *r)
{
    struct tenrec_torch_member *m = r->member;
    bool room;

    r->waiting_bytes = request_bytes(r);
    pthread_mutex_lock(&m->lock);
    room =
        m->waiting < (size_t)m->settings->max_queued_calls &&
        (m->waiting == 0 || m->waiting_bytes + r->waiting_bytes <= m->settings->max_served_bytes);
    m->waiting += room;
    m->waiting_bytes += room ? r->waiting_bytes : 0;
    pthread_mutex_unlock(&m->lock);
    return room;
}

static tenrec_status request_begin_waiting(struct tenrec_torch_request *r, tenrec_error *err)
{

    r->waiter = arena_new(&r->arena, r->refs.n, sizeof *r->waiter);
    if (!r->waiter)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to wait for %zu references", r->refs.n);
    return request_enter_waiting(r)
               ? TENREC_OK
               : tenrec_fail(err, TENREC_EAGAIN,
                             "too many calls already wait for references here: at most "
                             "%" PRId64 " (max_queued_calls), of %" PRIu64
                             " bytes together (max_served_bytes)",
                             r->member->settings->max_queued_calls,
                             r->member->settings->max_served_bytes);
}

static void request_wait(struct tenrec_torch_request *r)
{
    const uint64_t deadline_ns = clock_deadline_ms(r->member->settings->rpc_timeout_ms);
    struct tenrec_torch_member *m = r->member;
    const size_t n = r->refs.n;

    atomic_store(&r->left, n + 1);
    for (size_t i = 0; i < n; i++) {
        struct rref_waiter *w = &r->waiter[i].waiter;
        r->waiter[i].request = r;
        w->from = r->from;
        w->deadline_ns = deadline_ns;
        w->ready = request_ready;
        if (rref_wait(r->refs.item[i].ref, w))
            request_ready(w, w->why);
    }
    if (deadline_ns != CLOCK_NEVER)
        tenrec_chain_wake_at(m->chain, deadline_ns);
    request_count_down(r);
}

/* ---- serving ------------------------------------------------------------------------------ */

/* Reads the arguments. */
static tenrec_status request_take(struct tenrec_torch_request *r, const struct request_call *call,
                                  tenrec_error *err)
{
    tenrec_status st = message_tensors_take(r->msg, &r->tensors, err);

    if (st == TENREC_OK)
        st = pyobject_values(call->arg, call->n, &r->arena,
                             &(struct pyobject_source){ .tensor = r->tensors.tensor,
                                                        .n_tensors = r->tensors.n,
                                                        .refs = &r->refs,
                                                        .bytes = (size_t)r->msg->payload_len },
                             &r->args, err);
    arrivals_tell(&r->refs);
    if (st == TENREC_OK && call->keywords)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED,
                         "functions of this worker take no keyword arguments");
    r->n_args = call->n;
    return st;
}

static tenrec_status request_begin(struct tenrec_torch_request *r, bool *ret_done,
                                   tenrec_error *err)
{
    struct request_call call;
    tenrec_status st = request_read(r, &call, err);

    *ret_done = false;
    if (st == TENREC_OK && !r->made)
        st = membership_request(r, &call, ret_done, err);
    if (st == TENREC_OK && !*ret_done)
        st = request_take(r, &call, err);
    if (st == TENREC_OK && r->refs.n > 0)
        st = request_begin_waiting(r, err);
    return st;
}

static void request_run(struct pool_task *t)
{
    struct tenrec_torch_request *r = (struct tenrec_torch_request *)t;
    const struct tenrec_value none = tenrec_value_nil();
    tenrec_error err = { .code = TENREC_OK };
    tenrec_status st;
    bool done;

    if (t->refused) {
        request_refuse_blocked(r);
        return;
    }
    st = request_begin(r, &done, &err);
    if (st == TENREC_OK && done && !r->reply)
        st = tenrec_torch_request_return(r, &none, &err);
    if (st != TENREC_OK)
        request_end(r, &err);
    else if (done)
        request_end(r, NULL);
    else if (r->refs.n > 0)
        request_wait(r);
    else
        request_run_call(r);
}

void torch_requests_serve(struct tenrec_torch_member *m, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_torch_request *r;

    if (references_serve(m, from, msg))
        return;
    r = memory_new(1, sizeof *r);
    if (!r) { /* the caller's timeout tells it */
        msg->release(msg);
        return;
    }
    atomic_flag_clear(&r->failed);
    r->task = (struct pool_task){ .bytes = tenrec_msg_bytes(msg) };
    r->member = m;
    r->from = from;
    r->msg = msg;
    r->refs = (struct arrivals){ .ctx = m->refs, .from = from };
    request_queue(r, request_run);
}

void torch_requests_stop(struct tenrec_torch_member *m)
{
    struct pool_task *next;

    for (struct pool_task *t = pool_stop(m->pool); t; t = next) {
        next = t->next;
        request_refuse((struct tenrec_torch_request *)t);
    }
}
