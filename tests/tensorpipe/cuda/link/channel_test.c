/* SPDX-License-Identifier: Apache-2.0 */
/* channel_test.c - tensors from and to devices, by every way there is. */
#include "../../../testing.h"
#include "rig.h"

#include <signal.h>

#define MIB ((size_t)1 << 20)

struct kind {
    const char *name;
    struct rig_setup setup;
    const char *counter; /* of tensors from device to device */
};

static const struct kind kinds[] = {
    { "xth", { .two_processes = false }, "cuda.xth" },
    { "ipc", { .two_processes = true }, "cuda.ipc" },
    { "basic", { .channels = "cuda_basic", .two_processes = true }, "cuda.basic" },
    { "basic over rings",
      { .channels = "cuda_basic", .two_processes = true, .transport = "shm" },
      "cuda.basic" },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static int last_device(void)
{
    return fake_open(NULL) > 1 ? 1 : 0;
}

TEST(cuda_carries_tensors_of_all_sizes)
{
    static const size_t sizes[] = {
        0, 1, 4, 511, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB + 5, 64 * MIB
    };

    for (size_t k = 0; k < KINDS; k++) {
        struct rig r;

        rig_open(&r, &kinds[k].setup);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            rig_call(&r, &(struct rig_tensor){ sizes[i], 0, 0, 0 }, 1, (uint32_t)(10 * i));
        assert_int_equal(rig_count(&r, kinds[k].counter), sizeof sizes / sizeof sizes[0] - 1);
        rig_close(&r);
    }
}

TEST(cuda_maps_from_every_device_to_every_other)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct rig r;

        rig_open(&r, &kinds[k].setup);
        for (int from = RIG_CPU; from <= last_device(); from++)
            for (int there = RIG_CPU; there <= last_device(); there++)
                for (int back = RIG_CPU; back <= last_device(); back++)
                    rig_call(&r, &(struct rig_tensor){ 2 * MIB + 3, from, there, back }, 1, 3);
        rig_close(&r);
    }
}

TEST(cuda_carries_several_tensors_of_one_message)
{
    const int other = last_device();
    const struct rig_tensor t[RIG_TENSORS] = {
        { 5 * MIB, 0, other, 0 },
        { 100, RIG_CPU, RIG_CPU, RIG_CPU },
        { 2 * MIB, RIG_CPU, 0, RIG_CPU },
        { 7, other, 0, other },
        { 0, 0, 0, 0 },
        { MIB, other, RIG_CPU, 0 },
        { 3 * MIB, RIG_CPU, RIG_CPU, 0 },
        { 40000, 0, 0, RIG_CPU },
    };

    for (size_t k = 0; k < KINDS; k++) {
        struct rig r;

        rig_open(&r, &kinds[k].setup);
        for (uint32_t i = 0; i < 5; i++) {
            rig_call(&r, t, RIG_TENSORS, 100 * i);
            rig_ping(&r);
        }
        rig_close(&r);
    }
}

/* Each other question whether a copy is done is answered with no. */
TEST(cuda_sends_pieces_in_order_when_later_pieces_are_seen_done_first)
{
    struct rig_setup setup = { .channels = "cuda_basic",
                               .two_processes = true,
                               .child_env = "FAKE_CUDA_LATE_QUERIES=1" };
    struct rig r;

    rig_open(&r, &setup);
    for (uint32_t i = 0; i < 20; i++)
        rig_call(&r, &(struct rig_tensor){ 5 * MIB, 0, 0, 0 }, 1, i);
    rig_close(&r);
}

/* One call's tensors are pieces of few that are there. */
TEST(cuda_needs_no_more_pinned_memory_than_its_limit)
{
    struct rig_setup setup = { .channels = "cuda_basic",
                               .two_processes = true,
                               .staging = 4 * MIB };
    struct rig_tensor t[RIG_TENSORS];
    struct rig r;

    for (unsigned i = 0; i < RIG_TENSORS; i++)
        t[i] = (struct rig_tensor){ 6 * MIB + i, 0, 0, 0 };
    rig_open(&r, &setup);
    rig_call(&r, t, RIG_TENSORS, 0);
    if (fake_is_stand_in())
        assert_true(fake_live(FAKE_HOST_MEMORY) <= 4 + RIG_TENSORS); /* and those of fake_fill */
    rig_close(&r);
}

TEST(cuda_serves_a_worker_without_devices)
{
    for (int side = -2; side <= -1; side++) {
        struct rig_setup setup = { .two_processes = true, .devices = side };
        const bool here = side == -2;
        struct rig r;

        rig_open(&r, &setup);
        if (here)
            rig_call(&r, &(struct rig_tensor){ 3 * MIB, 0, RIG_CPU, 0 }, 1, 1);
        else
            rig_call(&r, &(struct rig_tensor){ 3 * MIB, RIG_CPU, 0, RIG_CPU }, 1, 1);
        rig_close(&r);
    }
}

/* It stands already: what comes back takes the better way once the other side knows. */
TEST(cuda_connection_takes_the_better_way_once_there_are_devices)
{
    static const struct tenrec_device first = { TENREC_CUDA, 0 };
    const struct rig_setup setup = { .two_processes = false, .devices = -1 };
    struct node *n;
    struct rig r;
    tenrec_error err;

    rig_open(&r, &setup);
    n = &r.n[0];
    rig_call(&r, &(struct rig_tensor){ 3 * MIB, RIG_CPU, 0, 0 }, 1, 1);
    assert_int_equal(node_counter(&r.n[1], "cuda.basic"), 1);
    assert_status(n->agent.ops->use_devices(&n->agent, &first, 1, &err), &err);
    for (uint32_t i = 2; node_counter(&r.n[1], "cuda.xth") == 0; i++) {
        assert_true(i < 100);
        rig_call(&r, &(struct rig_tensor){ 3 * MIB, RIG_CPU, 0, 0 }, 1, i);
    }
    rig_close(&r);
}

TEST(cuda_costs_nothing_without_devices)
{
    const struct rig_setup setup = { .two_processes = false };
    static unsigned char data[1 << 20];
    struct rig r, plain;
    struct call c = { .wake_fd = -1 };
    unsigned connections = 0;

    rig_open(&r, &setup);
    rig_ping(&r);
    connections = (unsigned)rig_count(&r, "connections");
    rig_close(&r);
    group_open(plain.n, 2, "sleep");
    call_start(&plain.n[0], &c, 1, message_of(7, "x", 1, 1, data, sizeof data));
    assert_becomes(c.done);
    assert_int_equal(c.status, 0);
    call_finish(&c);
    assert_int_equal(node_counter(&plain.n[0], "connections") + 1, connections);
    group_close(plain.n, 2);
}

TEST(cuda_opens_the_memory_of_a_peer_once)
{
    struct rig_setup setup = { .channels = "cuda_ipc,cuda_basic", .two_processes = true };
    struct rig r;
    unsigned opened;

    if (!fake_is_stand_in())
        skip();
    rig_open(&r, &setup);
    rig_call(&r, &(struct rig_tensor){ MIB, 0, 0, 0 }, 1, 1);
    opened = fake_calls("cuIpcOpenMemHandle_v2");
    /* What the child sends back lies in memory that it keeps and uses again. */
    for (uint32_t i = 0; i < 10; i++)
        rig_call(&r, &(struct rig_tensor){ MIB, 0, 0, 0 }, 1, i);
    assert_true(fake_calls("cuIpcOpenMemHandle_v2") - opened <= 1);
    assert_int_equal(rig_count(&r, "cuda.ipc_refused"), 0);
    rig_close(&r);
}

TEST(cuda_stages_memory_that_cannot_be_mapped)
{
    struct rig_setup setup = { .channels = "cuda_ipc,cuda_basic",
                               .two_processes = true,
                               .child_env = "FAKE_CUDA_FAIL=cuIpcOpenMemHandle_v2:1" };
    struct rig r;

    if (!fake_is_stand_in())
        skip();
    rig_open(&r, &setup);
    for (uint32_t i = 0; i < 3; i++)
        rig_call(&r, &(struct rig_tensor){ 3 * MIB, 0, 0, 0 }, 1, i);
    assert_int_equal(rig_count(&r, "cuda.ipc_refused"), 1);
    assert_int_equal(rig_count(&r, "cuda.basic"), 2);
    rig_close(&r);
}

TEST(cuda_names_the_channel_that_is_missing)
{
    struct rig_setup setup = { .channels = "cuda_ipc", .two_processes = true };
    tenrec_error err;
    struct rig r;

    rig_open(&r, &setup);
    r.ready = true;
    assert_int_equal(rig_try(&r, &(struct rig_tensor){ 100, 0, RIG_CPU, 0 }, 1, 1, &err),
                     TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "cuda_basic would");
    rig_ping(&r);
    rig_close(&r);
}

TEST(cuda_ends_calls_when_the_peer_dies)
{
    for (size_t k = 1; k < KINDS; k++) {
        const struct rig_tensor t = { 64 * MIB, 0, 0, 0 };
        struct rig r;

        rig_open(&r, &kinds[k].setup);
        rig_call(&r, &(struct rig_tensor){ 100, 0, 0, 0 }, 1, 1);
        r.ready = true;
        /* A GPU has often answered before the signal comes: let it not begin. */
        if (!fake_is_stand_in())
            assert_int_equal(kill(r.child, SIGSTOP), 0);
        rig_start(&r, &t, 1, 2);
        assert_becomes(rig_count(&r, kinds[k].counter) == 2);
        rig_kill(&r);
        assert_int_not_equal(rig_end(&r, &t, 1, 2, NULL), TENREC_OK);
        rig_close(&r);
    }
}

int main(int argc, char **argv)
{
    const char *why;

    rig_child(argc, argv);
    if (!fake_open(&why)) {
        printf("1..0 # SKIP no GPU: %s\n", why);
        return 77;
    }
    return testing_run(NULL, NULL);
}
