/* SPDX-License-Identifier: Apache-2.0 */
/* channel_lanes_test.c - tensors over several TCP connections. */
#include "tensors.h"

#include "../support/message_hooks.h"
#include "agent/agent.h"
#include <stdlib.h>

static void open_with_lanes(struct node *n, tenrec_peer id, const char *progress, int64_t lanes)
{
    node_init(n, id);
    n->options.progress = progress;
    n->options.lanes = lanes;
    node_open(n);
}

/* The channel to worker 1 in the debug info. */
static void find_channel(void *arg, const char *key, const char *value)
{
    if (strcmp(key, "peer.1.channel") == 0)
        snprintf(arg, 32, "%s", value);
}

static const char *channel_of(struct node *n)
{
    static char name[32];

    *name = '\0';
    n->agent.ops->debug_info(&n->agent, find_channel, name);
    return name;
}

TEST(channel_spreads_large_tensors_over_its_lanes)
{
    static const size_t sizes[] = { 2 * MIB, 2 * MIB - 1,  0,       2 * MIB + 1, 10, 9 * MIB,
                                    1,       17 * MIB + 3, 64 * MIB };
    static const char *const progress[] = { "sleep", "adaptive", "busy" };
    static const int64_t lanes[] = { 2, 3, 16 };

    for (size_t m = 0; m < 3; m++) {
        struct node n[2];

        open_with_lanes(&n[0], 0, progress[m], lanes[m]);
        open_with_lanes(&n[1], 1, progress[m], lanes[m]);
        nodes_start(n, 2);
        call_tensors(n, sizes, 8);
        assert_string_equal(channel_of(n), "tenrec_lanes");
        call_tensors(n, sizes + 8, 1);
        for (size_t i = 0; i < 20; i++)
            call_tensors(n, sizes + i % 5, 1 + (uint32_t)i % 4);
        group_close(n, 2);
    }
}

TEST(channel_skips_tensors_on_its_lanes)
{
    static const size_t size = 5 * MIB;
    unsigned char *data = malloc(4 * MIB);
    struct call c = { .id = 0 };
    struct node n[2];

    tensor_fill(data, 4 * MIB, 1);
    open_with_lanes(&n[0], 0, "sleep", 4);
    open_with_lanes(&n[1], 1, "sleep", 4);
    nodes_start(n, 2);
    atomic_store(&n[1].refuse_place, true);
    assert_int_equal(call_sync(n, 1, message_of(TENREC_MSG_CALL, "", 0, 1, data, 4 * MIB), &c),
                     TENREC_OK);
    assert_int_equal(c.answer->type, TENREC_MSG_EXCEPTION);
    call_finish(&c);
    atomic_store(&n[1].refuse_place, false);
    call_tensors(n, &size, 1);
    group_close(n, 2);
    free(data);
}

TEST(channel_has_no_lanes_with_a_peer_that_has_another_number)
{
    static const size_t size = 5 * MIB;
    struct node n[2];

    open_with_lanes(&n[0], 0, "sleep", 4);
    open_with_lanes(&n[1], 1, "sleep", 3);
    nodes_start(n, 2);
    call_tensors(n, &size, 1);
    assert_string_equal(channel_of(n), "tenrec_host");
    group_close(n, 2);
}

TEST(channel_has_no_lanes_where_memory_is_shared)
{
    static const size_t size = 5 * MIB;
    struct node n[2];

    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        node_share_memory(&n[i]);
        n[i].options.lanes = 4;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
    call_tensors(n, &size, 1);
    assert_string_equal(channel_of(n), "tenrec_host");
    group_close(n, 2);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
