/* SPDX-License-Identifier: Apache-2.0 */
/* agent_calls_test.c BACKEND - calls without RPC: the chain pairs answers with requests. */
#include "agent_pair.h"

#include <tenrec/tensor.h>
#include <time.h>

#define FOREVER_NS 0

/* How a call ended. */
struct outcome {
    atomic_int times;
    struct tenrec_msg *msg; /* owns */
    tenrec_error why;
};

static void on_answer(void *arg, struct tenrec_msg *msg, const tenrec_error *why)
{
    struct outcome *o = arg;

    if (msg)
        o->msg = msg;
    else
        o->why = *why;
    atomic_fetch_add(&o->times, 1);
}

static tenrec_status call(struct outcome *o, uint64_t deadline_ns, tenrec_error *err)
{
    struct tenrec_msg *msg = tenrec_msg_new(4, 0);

    assert_non_null(msg);
    *o = (struct outcome){ .times = 0 };
    msg->type = TENREC_MSG_CALL;
    msg->deadline_ns = deadline_ns;
    msg->key_len = 4;
    memcpy(msg->payload, "same", 4);
    return tenrec_chain_call(pair->end[0].agent, 1, msg, (struct tenrec_answer){ on_answer, o },
                             err);
}

/* A call that has arrived at the other end. */
static void call_arrives(struct outcome *o, uint64_t deadline_ns)
{
    const uint32_t before = atomic_load(&pair->end[1].got);
    tenrec_error err;

    assert_status(call(o, deadline_ns, &err), &err);
    assert_becomes(atomic_load(&pair->end[1].got) == before + 1);
}

/* The last request at the other end. */
static struct tenrec_msg *take_request(void)
{
    struct end *e = &pair->end[1];
    struct tenrec_msg *msg;

    pthread_mutex_lock(&e->lock);
    msg = e->last;
    e->last = NULL;
    pthread_mutex_unlock(&e->lock);
    assert_non_null(msg);
    return msg;
}

/* The other end answers a request, which is taken. */
static void answer_to(struct tenrec_msg *request, uint32_t n_tensors)
{
    struct tenrec_msg *msg = tenrec_msg_new(0, n_tensors);
    const int64_t shape = 10;
    struct tenrec_tensor *t;

    assert_non_null(msg);
    msg->type = TENREC_MSG_RET;
    msg->id = request->id;
    msg->route = request->route;
    msg->flags = TENREC_MSG_CONTROL;
    for (uint32_t i = 0; i < n_tensors; i++) {
        assert_int_equal(tenrec_tensor_new(TENREC_UINT8, 1, &shape, &t, NULL), TENREC_OK);
        tenrec_msg_set_tensor(msg, i, t);
    }
    request->release(request);
    agent_pair_send(1, msg);
}

static void assert_failed(struct outcome *o, tenrec_status code)
{
    assert_becomes(atomic_load(&o->times) == 1);
    assert_null(o->msg);
    assert_int_equal(o->why.code, code);
}

static bool is_faulty(void)
{
    return strcmp(agent_pair_backend, "faulty") == 0;
}

static bool is_not_faulty(void)
{
    return !is_faulty();
}

/* ---- cases ----------------------------------------------------------------- */

TEST_WHEN(agent_calls_end_with_their_own_answers, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    struct outcome first, second;
    struct tenrec_msg *request, *next;

    call_arrives(&first, FOREVER_NS);
    request = take_request();
    call_arrives(&second, FOREVER_NS);
    next = take_request();
    assert_int_not_equal(next->id, request->id);
    answer_to(next, 0);
    assert_becomes(atomic_load(&second.times) == 1);
    assert_int_equal(second.msg->type, TENREC_MSG_RET);
    assert_int_equal(atomic_load(&first.times), 0);
    answer_to(request, 0);
    assert_becomes(atomic_load(&first.times) == 1);
    assert_int_equal(atomic_load(&pair->end[0].got), 0);
    first.msg->release(first.msg);
    second.msg->release(second.msg);
}

TEST_WHEN(agent_calls_end_at_their_deadline_and_later_answers_are_delivered, is_not_faulty,
          agent_pair_make, agent_pair_drop)
{
    struct outcome late, other;
    struct timespec now;

    call_arrives(&other, FOREVER_NS);
    clock_gettime(CLOCK_MONOTONIC, &now);
    call_arrives(&late, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + 1000000000);
    assert_failed(&late, TENREC_ETIMEDOUT);
    answer_to(take_request(), 0);
    assert_becomes(atomic_load(&pair->end[0].got) == 1);
    assert_int_equal(atomic_load(&late.times), 1);
    assert_int_equal(atomic_load(&other.times), 0);
    tenrec_chain_stop(pair->end[0].agent); /* while `other` waits */
}

TEST_WHEN(agent_calls_end_when_their_peer_is_gone, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    struct outcome o;

    call_arrives(&o, FOREVER_NS);
    tenrec_chain_stop(pair->end[1].agent);
    assert_becomes(atomic_load(&o.times) == 1);
    assert_null(o.msg);
    assert_becomes(atomic_load(&pair->end[0].lost) == 1); /* the user is notified, too */
}

TEST_WHEN(agent_calls_end_with_the_reason_of_the_program, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct outcome o;
    tenrec_error why;

    call_arrives(&o, FOREVER_NS);
    tenrec_fail(&why, TENREC_EGROUP, "the worker has left");
    tenrec_chain_end_calls(pair->end[0].agent, 0, &why); /* those to another member */
    assert_int_equal(atomic_load(&o.times), 0);
    tenrec_chain_end_calls(pair->end[0].agent, 1, &why);
    assert_failed(&o, TENREC_EGROUP);
    assert_string_equal(o.why.text, "the worker has left");
}

TEST_WHEN(agent_calls_end_when_the_chain_stops, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    struct outcome o, later;
    tenrec_error err;

    call_arrives(&o, FOREVER_NS);
    tenrec_chain_stop(pair->end[0].agent);
    assert_int_equal(atomic_load(&o.times), 1);
    assert_null(o.msg);
    assert_int_equal(call(&later, FOREVER_NS, &err), TENREC_ESHUTDOWN);
    assert_int_equal(err.code, TENREC_ESHUTDOWN);
    assert_int_equal(atomic_load(&later.times), 0);
}

TEST_WHEN(agent_calls_fail_when_their_answer_cannot_be_placed, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct outcome o;

    call_arrives(&o, FOREVER_NS);
    atomic_store(&pair->end[0].full, true);
    answer_to(take_request(), 1);
    assert_failed(&o, TENREC_ENOMEM);
    assert_non_null(strstr(o.why.text, "no room for tensors"));
    /* The agent may deliver an EXCEPTION in the place of that answer: it finds no call. */
    tenrec_chain_stop(pair->end[0].agent);
    assert_int_equal(atomic_load(&o.times), 1);
}

/* Only of faulty: the call's number fails once, then goes through. */
TEST_WHEN(agent_calls_return_an_injected_failure, is_faulty, agent_pair_make, agent_pair_drop)
{
    struct outcome o;
    tenrec_error err;

    assert_int_equal(call(&o, FOREVER_NS, &err), TENREC_EINJECTED);
    assert_int_equal(atomic_load(&o.times), 0);
    call_arrives(&o, FOREVER_NS);
    answer_to(take_request(), 0);
    assert_becomes(atomic_load(&o.times) == 1);
    o.msg->release(o.msg);
}

int main(int argc, char **argv)
{
    assert_int_equal(argc, 2);
    agent_pair_backend = argv[1];
    return testing_run(NULL, NULL);
}
