/* SPDX-License-Identifier: Apache-2.0 */
/* agent_payload_test.c BACKEND - large payloads without RPC, in memory of the program. */
#include "agent_pair.h"

#include <stdlib.h>
#include <tenrec/tensor.h>

/* Of a payload of the test's own pattern. */
static struct tenrec_msg *large_request(uint64_t bytes, uint32_t n_tensors)
{
    struct tenrec_msg *msg = tenrec_msg_new(bytes, n_tensors);

    assert_non_null(msg);
    msg->type = 0x10f;
    for (uint64_t i = 0; i < bytes; i++)
        ((unsigned char *)msg->payload)[i] = (unsigned char)(i * 7 + (i >> 12));
    return msg;
}

static bool has_pattern(const unsigned char *p, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (p[i] != (unsigned char)(i * 7 + (i >> 12)))
            return false;
    return true;
}

/* inproc hands the sender's message over, with its memory. */
static bool is_wired(void)
{
    return strcmp(agent_pair_backend, "inproc") != 0;
}

TEST_WHEN(agent_payload_lands_in_memory_of_the_program, is_wired, agent_pair_make, agent_pair_drop)
{
    struct end *b = &pair->end[1];
    const uint64_t bytes = 3 << 20;

    b->keeps = true;
    for (uint32_t n_tensors = 0; n_tensors < 2; n_tensors++) {
        struct tenrec_msg *msg = large_request(bytes, n_tensors);
        struct tenrec_tensor *t;
        struct agent_payload *p;
        tenrec_error err;

        if (n_tensors) {
            const int64_t shape[] = { 4 };
            assert_status(tenrec_tensor_new(TENREC_INT32, 1, shape, &t, &err), &err);
            memcpy(tenrec_tensor_data(t), "0123456789abcdef", 16);
            tenrec_msg_set_tensor(msg, 0, t);
        }
        agent_pair_send(0, msg);
        assert_becomes(atomic_load(&b->got) == n_tensors + 1);
        assert_int_equal(b->last->payload_len, bytes);
        p = tenrec_msg_take_payload(b->last);
        assert_non_null(p);
        assert_int_equal(b->last->payload_len, 0);
        assert_null(tenrec_msg_take_payload(b->last));
        assert_true(has_pattern(p->byte, bytes));
        if (n_tensors) {
            t = tenrec_msg_take_tensor(b->last, 0);
            assert_non_null(t);
            assert_memory_equal(tenrec_tensor_data(t), "0123456789abcdef", 16);
            tenrec_tensor_drop(t);
        }
        agent_pair_forget(b);
        assert_int_equal(atomic_load(&b->dropped), 0);
        free(p);
    }
}

TEST_WHEN(agent_payload_that_is_not_taken_is_dropped_with_its_message, is_wired, agent_pair_make,
          agent_pair_drop)
{
    struct end *b = &pair->end[1];

    b->keeps = true;
    agent_pair_send(0, large_request(TENREC_LARGE_PAYLOAD, 0));
    assert_becomes(atomic_load(&b->got) == 1);
    assert_int_equal(atomic_load(&b->dropped), 0);
    assert_true(has_pattern(b->last->payload, TENREC_LARGE_PAYLOAD));
    agent_pair_forget(b);
    assert_int_equal(atomic_load(&b->dropped), 1);
}

TEST_WITH(agent_payload_has_memory_of_the_message_when_small_or_refused, agent_pair_make,
          agent_pair_drop)
{
    struct end *b = &pair->end[1];

    for (unsigned i = 0; i < 2; i++) {
        const uint64_t bytes = i ? TENREC_LARGE_PAYLOAD : TENREC_LARGE_PAYLOAD - 1;

        b->keeps = i == 0;
        agent_pair_send(0, large_request(bytes, 0));
        assert_becomes(atomic_load(&b->got) == i + 1);
        assert_null(tenrec_msg_take_payload(b->last));
        assert_int_equal(b->last->payload_len, bytes);
        assert_true(has_pattern(b->last->payload, bytes));
        agent_pair_forget(b);
    }
    assert_int_equal(atomic_load(&b->dropped), 0);
}

int main(int argc, char **argv)
{
    assert_int_equal(argc, 2);
    agent_pair_backend = argv[1];
    return testing_run(NULL, NULL);
}
