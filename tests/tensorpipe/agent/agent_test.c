/* SPDX-License-Identifier: Apache-2.0 */
/* agent_test.c - two agents of one process carry messages and tensors. */
#include "node.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const modes[] = { "sleep", "adaptive", "busy" };

static void fill(unsigned char *data, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)(i * 31 + (i >> 8) + seed);
}

TEST(agent_answers_a_call_in_every_progress_mode)
{
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];

        group_open(n, 2, modes[m]);
        for (int i = 0; i < 200; i++)
            assert_ping(&n[0], 1);
        assert_ping(&n[1], 0);
        assert_int_equal(n[1].last_from, 0);
        group_close(n, 2);
    }
}

TEST(agent_carries_payloads_of_all_sizes)
{
    static const size_t sizes[] = { 0,    1,    127,   128,   255,    256,     4095,
                                    4096, 4097, 65000, 65535, 131072, 1 << 20, 5000000 };
    struct node n[2];
    struct call c = { .id = 0 };

    group_open(n, 2, "adaptive");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *data = malloc(sizes[i] + 1);

        fill(data, sizes[i], (unsigned)i);
        assert_int_equal(
            call_sync(&n[0], 1, message_of(TENREC_MSG_CALL, data, sizes[i], 0, NULL, 0), &c),
            TENREC_OK);
        assert_int_equal(c.answer->payload_len, sizes[i]);
        assert_memory_equal(c.answer->payload, data, sizes[i]);
        call_finish(&c);
        free(data);
    }
    group_close(n, 2);
}

static void call_tensors(struct node *n, uint32_t count, uint64_t bytes)
{
    unsigned char *data = malloc(count * bytes + 1);
    struct call c = { .id = 0 };

    fill(data, count * bytes, count);
    assert_int_equal(call_sync(n, 1, message_of(TENREC_MSG_CALL, "t", 1, count, data, bytes), &c),
                     TENREC_OK);
    assert_int_equal(c.answer->type, TENREC_MSG_RET);
    assert_int_equal(c.answer->n_tensors, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(c.answer, i);

        assert_int_equal(t->bytes, bytes);
        assert_int_equal(t->ndim, 1);
        assert_int_equal(t->shape[0], bytes);
        assert_memory_equal(t->data, data + i * bytes, bytes);
    }
    call_finish(&c);
    free(data);
}

TEST(agent_carries_tensors_of_all_sizes)
{
    struct node n[2];

    for (size_t m = 0; m < 3; m++) {
        group_open(n, 2, modes[m]);
        call_tensors(n, 1, 0);
        call_tensors(n, 1, 1);
        call_tensors(n, 3, 0);
        call_tensors(n, 7, 1000);
        call_tensors(n, 100, 3);
        call_tensors(n, 2, 65536);
        call_tensors(n, 2, 3000001);
        call_tensors(n, 1, 64 << 20);
        group_close(n, 2);
    }
}

TEST(agent_reads_a_tensor_into_the_callers_buffer)
{
    size_t len = 1 << 20;
    unsigned char *data = malloc(len), *into = calloc(1, len);
    struct call c = { .into = into };
    struct node n[2];

    fill(data, len, 5);
    group_open(n, 2, "sleep");
    assert_int_equal(call_sync(&n[0], 1, message_of(TENREC_MSG_CALL, "", 0, 1, data, len), &c),
                     TENREC_OK);
    assert_ptr_equal(tenrec_msg_tensor(c.answer, 0)->data, into);
    assert_memory_equal(into, data, len);
    call_finish(&c);
    group_close(n, 2);
    free(data);
    free(into);
}

TEST(agent_calls_itself_through_a_pipe)
{
    struct node n[1];

    group_open(n, 1, "adaptive");
    for (int i = 0; i < 50; i++)
        assert_ping(&n[0], 0);
    assert_int_equal(node_counter(&n[0], "pipes_opened"), 1);
    group_close(n, 1);
}

TEST(agent_needs_one_system_call_each_way)
{
    enum { CALLS = 500 };
    static const char *const keys[] = { "sends", "receives", "messages_sent", "messages_received" };

    for (size_t m = 0; m < 3; m++) {
        uint64_t before[2][4], after[2][4];
        struct node n[2];

        group_open(n, 2, modes[m]);
        assert_ping(&n[0], 1);
        for (int w = 0; w < 2; w++)
            for (int k = 0; k < 4; k++)
                before[w][k] = node_counter(&n[w], keys[k]);
        for (int i = 0; i < CALLS; i++)
            assert_ping(&n[0], 1);
        for (int w = 0; w < 2; w++) {
            for (int k = 0; k < 4; k++) {
                after[w][k] = node_counter(&n[w], keys[k]);
                assert_int_equal(after[w][k] - before[w][k], CALLS);
            }
        }
        group_close(n, 2);
    }
}
