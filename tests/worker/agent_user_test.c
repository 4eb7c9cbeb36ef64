/* SPDX-License-Identifier: Apache-2.0 */
/* agent_user_test.c BACKEND... - messages without RPC, over each backend named. */
#include "agent_pair.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <tenrec/tensor.h>
#include <time.h>
#include <unistd.h>

static struct tenrec_msg *request(const char *payload, uint32_t n_tensors)
{
    struct tenrec_msg *msg = tenrec_msg_new(strlen(payload), n_tensors);

    assert_non_null(msg);
    msg->type = 0x10f; /* any number travels */
    msg->id = 42;
    memcpy(msg->payload, payload, strlen(payload));
    return msg;
}

static struct tenrec_msg *answer(const struct tenrec_msg *to)
{
    struct tenrec_msg *msg = tenrec_msg_new(0, 0);

    assert_non_null(msg);
    msg->type = 0x210;
    msg->id = to->id;
    msg->route = to->route;
    msg->flags = TENREC_MSG_CONTROL;
    return msg;
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

TEST_WITH(agent_user_carries_a_request_and_its_answer, agent_pair_make, agent_pair_drop)
{
    struct end *a = &pair->end[0], *b = &pair->end[1];

    agent_pair_send(0, request("hello", 0));
    assert_becomes(atomic_load(&b->got) == 1 && atomic_load(&a->told) == 1);
    assert_int_equal(b->last->type, 0x10f);
    assert_int_equal(b->last->payload_len, 5);
    assert_memory_equal(b->last->payload, "hello", 5);
    assert_int_equal(b->from, 0);
    agent_pair_send(1, answer(b->last));
    assert_becomes(atomic_load(&a->got) == 1);
    assert_int_equal(a->last->type, 0x210);
    assert_int_equal(a->last->id, 42);
    assert_int_equal(atomic_load(&a->failed) + atomic_load(&b->failed), 0);
}

TEST_WHEN(agent_user_tensors_outlive_their_message_when_taken, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    const int64_t shape[] = { 1 << 18 };
    struct tenrec_msg *msg = request("x", 1);
    struct tenrec_tensor *t;
    tenrec_error err;
    float *x;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &t, &err), &err);
    x = tenrec_tensor_data(t);
    for (int i = 0; i < 1 << 18; i++)
        x[i] = (float)i;
    tenrec_msg_set_tensor(msg, 0, t);
    agent_pair_send(0, msg);
    assert_becomes(atomic_load(&pair->end[1].got) == 1);
    assert_int_equal(atomic_load(&pair->end[1].placed), 1);
    t = tenrec_msg_take_tensor(pair->end[1].last, 0);
    assert_non_null(t);
    assert_null(tenrec_msg_take_tensor(pair->end[1].last, 0));
    pair->end[1].last->release(pair->end[1].last);
    pair->end[1].last = NULL;
    x = tenrec_tensor_data(t);
    assert_true(x[0] == 0 && x[1000] == 1000 && x[(1 << 18) - 1] == (float)((1 << 18) - 1));
    tenrec_tensor_drop(t);
}

TEST_WHEN(agent_user_tensors_land_in_placed_memory, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    const int64_t shape[] = { 4 };
    struct tenrec_msg *msg = request("x", 1);
    struct tenrec_tensor *t;
    tenrec_error err;

    pair->end[1].memory = calloc(1, 16);
    assert_non_null(pair->end[1].memory);
    assert_status(tenrec_tensor_new(TENREC_INT32, 1, shape, &t, &err), &err);
    memcpy(tenrec_tensor_data(t), "0123456789abcdef", 16);
    tenrec_msg_set_tensor(msg, 0, t);
    agent_pair_send(0, msg);
    assert_becomes(atomic_load(&pair->end[1].got) == 1);
    assert_memory_equal(pair->end[1].memory, "0123456789abcdef", 16);
    assert_null(tenrec_msg_take_tensor(pair->end[1].last, 0));
}

static atomic_int released;

static void count_release(struct tenrec_msg *msg)
{
    atomic_fetch_add(&released, 1);
    free(msg);
}

TEST_WHEN(agent_user_sends_messages_of_the_programs_own_making, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct tenrec_msg *msg = calloc(1, sizeof *msg);
    static char payload[] = "own";

    assert_non_null(msg);
    atomic_store(&released, 0);
    *msg = (struct tenrec_msg){ .size = sizeof *msg,
                                .type = 0x10f,
                                .id = 1,
                                .payload = payload,
                                .payload_len = 3,
                                .tensor_size = sizeof(struct tenrec_tensor_desc),
                                .release = count_release };
    agent_pair_send(0, msg);
    assert_becomes(atomic_load(&pair->end[1].got) == 1 && atomic_load(&pair->end[0].told) == 1);
    assert_memory_equal(pair->end[1].last->payload, "own", 3);
    /* inproc hands the very message over. */
    pair->end[1].last->release(pair->end[1].last);
    pair->end[1].last = NULL;
    assert_becomes(atomic_load(&released) == 1);
}

TEST_WHEN(agent_user_a_waiting_thread_reads_by_itself, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct tenrec_wait wait = { .size = sizeof wait, .done = (const uint32_t *)&pair->end[0].got };
    struct timespec now;
    tenrec_status st;

    agent_pair_send(0, request("hello", 0));
    assert_becomes(atomic_load(&pair->end[1].got) == 1);
    wait.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(wait.wake_fd >= 0);
    agent_pair_send(1, answer(pair->end[1].last));
    clock_gettime(CLOCK_MONOTONIC, &now);
    wait.deadline_ns = ((uint64_t)now.tv_sec + 10) * 1000000000;
    st = tenrec_chain_poll(pair->end[0].agent, 1, &wait);
    assert_true(st == TENREC_OK || st == TENREC_EUNSUPPORTED);
    assert_becomes(atomic_load(&pair->end[0].got) > 0);
    close(wait.wake_fd);
}

TEST_WITH(agent_user_reads_messages_on_the_leading_thread, agent_pair_make, agent_pair_drop)
{
    struct end *b = &pair->end[1];
    const struct tenrec_wait wait = { .size = sizeof wait,
                                      .wake_fd = -1,
                                      .done = (const uint32_t *)&b->got };
    const tenrec_status expected =
        strcmp(agent_pair_backend, "inproc") == 0 ? TENREC_EUNSUPPORTED : TENREC_OK;

    agent_pair_send(0, request("hello", 0));
    assert_int_equal(tenrec_chain_lead(b->agent, &wait), expected);
    assert_becomes(atomic_load(&b->got) > 0);
    agent_pair_send(0, request("hello", 0));
    assert_becomes(atomic_load(&b->got) == 2);
    tenrec_chain_stop(b->agent);
    assert_int_equal(tenrec_chain_lead(b->agent, &wait), TENREC_EUNSUPPORTED);
}

/* Between shm alone; elsewhere the tensor itself is as quick. */
TEST_WHEN(agent_user_copies_tensors_for_a_mapping_receiver, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct end *a = &pair->end[0], *b = &pair->end[1];
    const bool maps = strcmp(agent_pair_backend, "shm") == 0;
    const struct tenrec_route none = { 0 };
    const int64_t n = 1 << 20;
    struct tenrec_tensor *t, *copy, *got;
    struct tenrec_tensor_desc d;
    struct tenrec_msg *msg;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_UINT8, 1, &n, &t, &err), &err);
    memset(tenrec_tensor_data(t), 7, (size_t)n);
    d = *tenrec_tensor_desc(t);
    assert_null(tenrec_chain_copy_for(a->agent, 1, none, &d)); /* not connected */
    agent_pair_send(0, request("hello", 0));
    assert_becomes(atomic_load(&b->got) == 1 && atomic_load(&a->told) == 1);
    for (int i = 0; maps && i < 2; i++) { /* with the call, and with its answer */
        copy = i ? tenrec_chain_copy_for(b->agent, 0, b->last->route, &d)
                 : tenrec_chain_copy_for(a->agent, 1, none, &d);
        assert_non_null(copy);
        msg = i ? tenrec_msg_new(0, 1) : request("hello", 1);
        msg->route = i ? b->last->route : none;
        tenrec_msg_set_tensor(msg, 0, copy);
        agent_pair_send(i, msg);
        assert_becomes(atomic_load(&pair->end[1 - i].got) == (uint32_t)(2 - i));
        got = tenrec_msg_take_tensor(pair->end[1 - i].last, 0);
        assert_non_null(got);
        assert_false(tenrec_tensor_desc(got)->flags & TENREC_TENSOR_READ_ONLY);
        assert_int_equal(((unsigned char *)tenrec_tensor_data(got))[n - 1], 7);
        memset(tenrec_tensor_data(got), 8, (size_t)n);
        tenrec_tensor_drop(got);
    }
    if (!maps)
        assert_null(tenrec_chain_copy_for(a->agent, 1, none, &d));
    d.bytes = 64 << 10; /* too small to gain */
    assert_null(tenrec_chain_copy_for(a->agent, 1, none, &d));
    tenrec_tensor_drop(t);
}

/* The blocks in use at one time are within the limit of the receive pool. */
TEST_WHEN(agent_user_copies_no_more_than_the_pool_may_have, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    const struct tenrec_route none = { 0 };
    const int64_t n = 8 << 20;
    struct tenrec_tensor *t, *copy[64];
    unsigned made = 0;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_UINT8, 1, &n, &t, &err), &err);
    memset(tenrec_tensor_data(t), 7, (size_t)n);
    agent_pair_send(0, request("hello", 0));
    assert_becomes(atomic_load(&pair->end[1].got) == 1 && atomic_load(&pair->end[0].told) == 1);
    while (made < 64 && (copy[made] = tenrec_chain_copy_for(pair->end[0].agent, 1, none,
                                                            tenrec_tensor_desc(t))) != NULL)
        made++;
    assert_int_equal(made, strcmp(agent_pair_backend, "shm") == 0 ? 256 / 8 : 0);
    while (made > 0)
        tenrec_tensor_drop(copy[--made]);
    tenrec_tensor_drop(t);
}

TEST_WHEN(agent_user_wakes_at_the_earliest_deadline, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct timespec now;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    tenrec_chain_wake_at(pair->end[0].agent, ns + UINT64_C(3600000000000));
    tenrec_chain_wake_at(pair->end[0].agent, ns + 20000000);
    assert_becomes(atomic_load(&pair->end[0].woken) == 1);
    assert_int_equal(atomic_load(&pair->end[1].woken), 0);
}

TEST_WHEN(agent_user_is_told_that_a_peer_is_gone, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    agent_pair_send(0, request("hello", 0));
    assert_becomes(atomic_load(&pair->end[1].got) == 1);
    tenrec_chain_stop(pair->end[1].agent);
    assert_becomes(atomic_load(&pair->end[0].lost) == 1);
}

TEST_WHEN(agent_user_send_fails_after_stop, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    tenrec_chain_stop(pair->end[0].agent);
    tenrec_chain_stop(pair->end[0].agent);
    agent_pair_send(0, request("hello", 0));
    assert_int_equal(atomic_load(&pair->end[0].failed), 1);
    assert_int_equal(pair->end[0].why.code, TENREC_ESHUTDOWN);
}

TEST_WHEN(agent_user_drain_returns_after_all_completions, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    tenrec_error err;

    for (int i = 0; i < 20; i++)
        agent_pair_send(0, request("hello", 0));
    assert_status(tenrec_chain_drain(pair->end[0].agent, 10000, &err), &err);
    assert_int_equal(atomic_load(&pair->end[0].told), 20);
    assert_becomes(atomic_load(&pair->end[1].got) == 20);
}

TEST_WHEN(agent_user_reads_on_when_resumed, is_not_faulty, agent_pair_make, agent_pair_drop)
{
    agent_pair_send(0, request("hello", 0)); /* connected from now on */
    assert_becomes(atomic_load(&pair->end[1].got) == 1);
    atomic_store(&pair->end[1].deaf, true);
    for (int i = 0; i < 5; i++)
        agent_pair_send(0, request("hello", 0));
    assert_true(atomic_load(&pair->end[1].got) < 6);
    atomic_store(&pair->end[1].deaf, false);
    tenrec_chain_resume(pair->end[1].agent);
    assert_becomes(atomic_load(&pair->end[1].got) == 6);
}

TEST_WHEN(agent_user_names_its_backend_and_its_settings, is_not_faulty, agent_pair_make,
          agent_pair_drop)
{
    struct tenrec_chain_settings s = { .size = sizeof s };
    struct tenrec_chain_settings part = { .size = 8, .rpc_timeout_ms = 5 };

    assert_string_equal(tenrec_chain_name(pair->end[0].agent), agent_pair_backend);
    tenrec_chain_options_settings(pair->options, &s);
    assert_int_equal(s.num_worker_threads, 3);
    assert_int_equal(s.rpc_timeout_ms, 7000);
    assert_string_equal(s.init_method, "env://");
    tenrec_chain_options_settings(pair->options, &part);
    assert_int_equal(part.num_worker_threads, 3);
    assert_int_equal(part.rpc_timeout_ms, 5);
}

/* Only of faulty: the call's number fails once, then goes through. */
TEST_WHEN(agent_user_is_told_of_injected_failures, is_faulty, agent_pair_make, agent_pair_drop)
{
    struct tenrec_msg *msg;

    for (int i = 0; i < 2; i++) {
        msg = request("same", 0);
        msg->type = TENREC_MSG_CALL;
        msg->key_len = 4;
        agent_pair_send(0, msg);
        assert_becomes(atomic_load(&pair->end[0].told) == i + 1);
    }
    assert_int_equal(atomic_load(&pair->end[0].failed), 1);
    assert_int_equal(pair->end[0].why.code, TENREC_EINJECTED);
    assert_becomes(atomic_load(&pair->end[1].got) == 1);
}

int main(int argc, char **argv)
{
    assert_int_equal(argc, 2);
    agent_pair_backend = argv[1];
    return testing_run(NULL, NULL);
}
