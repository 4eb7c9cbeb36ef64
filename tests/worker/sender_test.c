/* SPDX-License-Identifier: Apache-2.0 */
/* sender_test.c - messages that a member sends in the name of another: an answer to a call
 * to another member, control messages of references that others hold. The backend is named in argv.
 */
#include "../support/cluster.h"
#include "../support/forger.h"
#include "../support/functions.h"
#include "../support/party.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/rref/rref.h"

#include "../testing.h"
#include "rpc/worker/worker.h"

#include <stdatomic.h>

enum { VICTIM, CALLEE, FORGER, WORKERS };

static struct cluster c;
static atomic_bool gate_open;

/* ---- answers ------------------------------------------------------------------ */

/* Returns the rank of the worker in a tensor of one float32; CALLEE waits for the gate before. */
static tenrec_status rank(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const size_t me = (size_t)(uintptr_t)arg;
    const int64_t shape[] = { 1 };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value v;
    tenrec_status st;

    while (me == CALLEE && !atomic_load(&gate_open))
        poll(NULL, 0, 1);
    st = tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &t, err);
    if (st != TENREC_OK)
        return st;
    *(float *)tenrec_tensor_data(t) = (float)me;
    v = tenrec_value_tensor(t);
    st = tenrec_call_return(call, &v, err);
    tenrec_tensor_drop(t);
    return st;
}

static void register_rank(struct tenrec_worker *w, size_t me)
{
    assert_int_equal(
        tenrec_worker_register_function(w, "rank", rank, (void *)(uintptr_t)me, TENREC_POOL, NULL),
        TENREC_OK);
}

static void open_three(void)
{
    atomic_store(&gate_open, false);
    cluster_open(&c, WORKERS, NULL, register_rank);
}

static void close_three(void)
{
    forger_set(NULL);
    atomic_store(&gate_open, true);
    cluster_close(&c, TENREC_GRACEFUL);
}

static _Atomic int64_t forged_id; /* of the answers of FORGER */

static void forge_answer(tenrec_peer me, tenrec_peer to, struct tenrec_msg *msg)
{
    if (me == FORGER && to == VICTIM && (msg->type & TENREC_MSG_RESPONSE_BIT))
        msg->id = atomic_load(&forged_id);
}

/* A call of "rank" whose result goes to `into`, which may be NULL. */
static struct tenrec_future *call_rank(const char *to, struct tenrec_tensor *into)
{
    const struct tenrec_call_options o = { .size = sizeof o,
                                           .timeout_ms = TENREC_TIMEOUT_DEFAULT,
                                           .into = into };
    struct tenrec_future *f = NULL;
    tenrec_error err;

    if (tenrec_rpc_async(c.worker[VICTIM], to, "rank", NULL, 0, &o, &f, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    return f;
}

TEST_WITH(call_keeps_its_buffer_and_result_when_another_member_answers, open_three, close_three)
{
    const int64_t shape[] = { 1 };
    struct tenrec_tensor *into = NULL;
    struct tenrec_future *call, *own;
    float *got;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &into, NULL), TENREC_OK);
    got = tenrec_tensor_data(into);
    *got = -1;
    call = call_rank("worker1", into);
    atomic_store(&forged_id, call->call.id);
    forger_set(forge_answer);
    own = call_rank("worker2", NULL);
    assert_becomes(atomic_load(&c.worker[VICTIM]->calls->counts.stray_replies) == 1);
    assert_true(*got == -1);
    assert_false(tenrec_future_done(call));
    assert_false(tenrec_future_done(own)); /* its answer went elsewhere */
    tenrec_future_cancel(own);
    atomic_store(&gate_open, true);
    if (tenrec_future_wait(call, CLUSTER_LONG_MS, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    assert_true(*got == CALLEE);
    tenrec_future_drop(own);
    tenrec_future_drop(call);
    tenrec_tensor_drop(into);
}

static void forge_exception(tenrec_peer me, tenrec_peer to, struct tenrec_msg *msg)
{
    forge_answer(me, to, msg);
    if (me == FORGER && to == VICTIM && (msg->type & TENREC_MSG_RESPONSE_BIT))
        msg->type = TENREC_MSG_EXCEPTION;
}

TEST_WITH(call_goes_on_when_another_member_answers_with_an_error, open_three, close_three)
{
    struct tenrec_future *call = call_rank("worker1", NULL), *own;
    tenrec_error err;

    atomic_store(&forged_id, call->call.id);
    forger_set(forge_exception);
    own = call_rank("worker2", NULL);
    assert_becomes(atomic_load(&c.worker[VICTIM]->calls->counts.stray_replies) == 1);
    tenrec_future_cancel(own);
    atomic_store(&gate_open, true);
    if (tenrec_future_wait(call, CLUSTER_LONG_MS, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    tenrec_future_drop(own);
    tenrec_future_drop(call);
}

/* ---- views ------------------------------------------------------------------------ */

enum { LEAVING = 1, VIEW_NUMBERS = 4 };

/* The message of worker `id` when it leaves. */
static struct tenrec_msg *leaving(struct tenrec_worker *w)
{
    const int64_t number[VIEW_NUMBERS] = { 1, LEAVING, w->self.id,
                                           group_of(w)->monitor->incarnation };
    struct tenrec_msg *msg = NULL;

    assert_int_equal(rref_numbers_write(TENREC_MSG_VIEW, number, VIEW_NUMBERS, &msg, NULL),
                     TENREC_OK);
    msg->id = 4711;
    msg->flags |= TENREC_MSG_CONTROL;
    return msg;
}

static tenrec_status call_noop(struct tenrec_worker *w, const char *to)
{
    return tenrec_rpc_sync(w, to, "noop", NULL, 0, NULL, NULL, NULL);
}

TEST(member_stays_callable_when_another_member_forges_its_leave)
{
    struct tenrec_worker *w[WORKERS];

    party_begin();
    for (int i = 0; i < WORKERS; i++)
        w[i] = party_join(-1, NULL, functions_register);
    forger_send(FORGER, VICTIM, leaving(w[CALLEE]));
    /* The refusal answers to no call of the forger's. */
    assert_becomes(atomic_load(&w[FORGER]->calls->counts.late_replies) == 1);
    assert_int_equal(call_noop(w[VICTIM], "worker1"), TENREC_OK);
    /* Its own word is believed. */
    forger_send(CALLEE, VICTIM, leaving(w[CALLEE]));
    assert_becomes(call_noop(w[VICTIM], "worker1") == TENREC_EPEER_UNKNOWN);
    for (int i = 0; i < WORKERS; i++)
        party_leave(w[i]);
}

int main(int argc, char **argv)
{
    cluster_use(argc > 1 ? argv[1] : "forging_inproc");
    forger_register();
    return testing_run(NULL, NULL);
}
