/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/backend.h"

#include "../support/message_hooks.h"
#include "../testing.h"

#include <pthread.h>
#include <stdlib.h>

TEST(message_new_points_into_one_block)
{
    struct tenrec_msg *msg = message_new(100, 3);

    assert_non_null(msg);
    assert_int_equal(msg->payload_len, 100);
    assert_int_equal(msg->n_tensors, 3);
    memset(msg->payload, 7, 100);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(tenrec_msg_tensor(msg, i)->bytes, 0);
        assert_null(tenrec_msg_tensor(msg, i)->data);
        assert_int_equal((uintptr_t)tenrec_msg_tensor(msg, i) % _Alignof(struct tenrec_tensor_desc),
                         0);
    }
    assert_true((char *)msg->payload >= (char *)tenrec_msg_tensor(msg, 3));
    msg->release(msg);
}

TEST(message_new_is_zeroed_when_recycled)
{
    struct tenrec_msg *msg = message_new(8, 1);

    msg->type = 5;
    msg->id = 6;
    msg->flags = 7;
    msg->key_len = 8;
    msg->route.generation = 9;
    msg->tensors->bytes = 10;
    msg->release(msg);
    msg = message_new(8, 1);
    assert_int_equal(msg->type, 0);
    assert_int_equal(msg->id, 0);
    assert_int_equal(msg->flags, 0);
    assert_int_equal(msg->key_len, 0);
    assert_int_equal(msg->route.generation, 0);
    assert_int_equal(msg->tensors->bytes, 0);
    msg->release(msg);
}

TEST(message_new_fails_when_the_size_is_absurd)
{
    assert_null(message_new(UINT64_MAX, 0));
    assert_null(message_new(UINT64_MAX - 200, 1));
}

TEST(message_place_gives_each_tensor_aligned_memory)
{
    const uint64_t bytes[] = { 1, 0, 64, 1000 };
    struct tenrec_msg *msg = message_new(0, 4);
    tenrec_error err;

    for (uint32_t i = 0; i < 4; i++)
        tenrec_msg_tensor(msg, i)->bytes = bytes[i];
    assert_status(message_place(msg, &err), &err);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal((uintptr_t)tenrec_msg_tensor(msg, i)->data % 64, 0);
        assert_int_equal(tenrec_msg_tensor(msg, i)->device.kind, TENREC_CPU);
        memset(tenrec_msg_tensor(msg, i)->data, (int)i, bytes[i]);
    }
    for (uint32_t i = 0; i < 4; i++)
        for (uint64_t k = 0; k < bytes[i]; k++)
            assert_int_equal(((unsigned char *)tenrec_msg_tensor(msg, i)->data)[k], i);
    msg->release(msg);
}

TEST(message_place_fails_when_the_sum_overflows)
{
    struct tenrec_msg *msg = message_new(0, 2);
    tenrec_error err;

    tenrec_msg_tensor(msg, 0)->bytes = UINT64_MAX / 2 - 200;
    tenrec_msg_tensor(msg, 1)->bytes = UINT64_MAX / 2 - 200;
    assert_int_equal(message_place(msg, &err), TENREC_ENOMEM);
    msg->release(msg);
}

static void count(void *arg, struct tenrec_msg *msg)
{
    *(int64_t *)arg += msg->id;
}

TEST(message_on_release_is_called_once)
{
    struct tenrec_msg *msg = message_new(0, 0);
    int64_t sum = 0;

    msg->id = 3;
    message_on_release(msg, count, &sum);
    msg->release(msg);
    assert_int_equal(sum, 3);
    msg = message_new(0, 0);
    msg->id = 5;
    msg->release(msg);
    assert_int_equal(sum, 3);
}

static void *release_all(void *arg)
{
    struct tenrec_msg **msg = arg;

    for (; *msg; msg++)
        (*msg)->release(*msg);
    return NULL;
}

/* One thread makes, another releases: blocks go round through the depot. */
TEST(message_release_works_on_another_thread)
{
    enum { N = 1000 };
    struct tenrec_msg **msg = calloc(N + 1, sizeof *msg);
    pthread_t thread;

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++) {
            msg[i] = message_new((uint64_t)i, i % 3 == 0);
            assert_non_null(msg[i]);
            memset(msg[i]->payload, i, (size_t)i);
        }
        assert_int_equal(pthread_create(&thread, NULL, release_all, msg), 0);
        pthread_join(thread, NULL);
    }
    free(msg);
}
