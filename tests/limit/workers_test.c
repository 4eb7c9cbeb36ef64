/* SPDX-License-Identifier: Apache-2.0 */
/* workers_test.c - real workers whose calls are limited, and counted by a meter around the limit,
 * on the transport named in argv. */
#include "../support/cluster.h"
#include "../support/debug_info.h"
#include "../support/functions.h"
#include "../testing.h"

#include <stdio.h>
#include <stdlib.h>

static struct cluster two;
static const char *transport = "inproc";

/* worker0 and worker1 with these options of the limit. */
static void open_limited(const char *const *options, size_t n)
{
    char backend[64], text[5][128];
    const char *extra[6] = { NULL };

    snprintf(backend, sizeof backend, "meter_%s", transport);
    for (size_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "backends.limit_%s.options.%s", transport, options[i]);
        extra[i] = text[i];
    }
    cluster_use(backend);
    cluster_open(&two, 2, extra, functions_register);
}

static void close_limited(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

/* The number behind a key of the layer `limit` or `meter` of a worker. */
static long number(size_t rank, const char *layer, const char *key)
{
    char full[128];

    snprintf(full, sizeof full, "%s_%s.%s", layer, transport, key);
    return debug_info_number(two.worker[rank], full);
}

TEST(limit_gives_its_status_to_callers_that_it_refuses)
{
    static const char *const options[] = { "direction=in", "by=peer", "over=refuse",
                                           "calls_per_second=0.001", "burst=3000s" };
    tenrec_error err;

    open_limited(options, 5);
    for (int i = 0; i < 3; i++)
        functions_must_call_add(two.worker[0], "worker1");
    assert_int_equal(functions_call_add(two.worker[0], "worker1", 1, 2, &err), TENREC_EAGAIN);
    assert_text_has(err.text, "CALL from worker 0 exceeds calls_per_second");
    functions_must_call_add(two.worker[1], "worker0"); /* a budget of its own */
    assert_int_equal(number(1, "limit", "refused"), 1);
    assert_int_equal(number(0, "limit", "refused"), 0);
    assert_int_equal(number(0, "meter", "peer.1.out.CALL.messages"), 4);
    assert_int_equal(number(0, "meter", "peer.1.out.CALL.answers"), 4);
    assert_int_equal(number(0, "meter", "peer.1.in.RET.messages"), 3);
    assert_int_equal(number(0, "meter", "peer.1.in.EXCEPTION.messages"), 1);
    assert_int_equal(number(1, "meter", "peer.0.in.CALL.messages"), 3); /* the fourth ended below */
    assert_int_equal(number(1, "meter", "peer.0.in.CALL.answers"), 3);
    close_limited();
}

TEST(limit_lets_queued_calls_end_before_a_graceful_shutdown)
{
    static const char *const options[] = { "calls_per_second=500", "burst=2ms" };
    struct tenrec_future *f[30];
    tenrec_error err;

    open_limited(options, 2);
    for (int i = 0; i < 30; i++)
        assert_status(
            tenrec_rpc_async(two.worker[0], "worker1", "noop", NULL, 0, NULL, &f[i], &err), &err);
    assert_int_equal(number(0, "limit", "refused"), 0);
    close_limited();
    for (int i = 0; i < 30; i++) {
        assert_status(tenrec_future_wait(f[i], 0, &err), &err);
        tenrec_future_drop(f[i]);
    }
}

TEST(limit_fails_a_call_whose_turn_comes_too_late)
{
    static const char *const options[] = { "calls_per_second=0.001", "burst=1000s" };
    tenrec_error err;

    open_limited(options, 2);
    functions_must_call_add(two.worker[0], "worker1");
    assert_int_equal(functions_call_add(two.worker[0], "worker1", 1, 2, &err), TENREC_EAGAIN);
    assert_text_has(err.text, "CALL to worker 1 exceeds the limit, and its turn comes after its");
    close_limited();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        transport = argv[1];
    return testing_run(NULL, NULL);
}
