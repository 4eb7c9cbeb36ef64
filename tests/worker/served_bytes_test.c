/* SPDX-License-Identifier: Apache-2.0 */
/* served_bytes_test.c - a worker whose calls hold too many bytes reads no further ones until some
 * have ended. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include "rpc/call/calls.h"
#include "rpc/future/pool.h"

#include <stdatomic.h>
#include <string.h>

enum { CALLS = 60, BYTES = 100000, SERVED_MAX = (1 << 20) / BYTES };

static struct cluster two;

static long served_now(void)
{
    struct tenrec_worker *w = two.worker[1];

    return (long)(atomic_load(&w->calls->counts.taken) - atomic_load(&w->calls->counts.served));
}

TEST(worker_stops_reading_when_its_calls_hold_too_many_bytes)
{
    static const char *const extra[] = { "worker.num_worker_threads=1",
                                         "worker.max_served_bytes=1MiB", NULL };
    static char text[BYTES + 1];
    struct tenrec_future *held, *f[CALLS];
    struct tenrec_value arg;

    memset(text, 'x', BYTES);
    arg = tenrec_value_text(text);
    cluster_open(&two, 2, extra, functions_register);
    held = functions_hold(two.worker[0], "worker1");
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(
            tenrec_rpc_async(two.worker[0], "worker1", "identity", &arg, 1, NULL, &f[i], NULL),
            TENREC_OK);
    assert_becomes(pool_full(two.worker[1]->calls->pool));
    /* That of the gate, and those that were being read: some more of a bundle or of a buffer. */
    assert_in_range(served_now(), 1, SERVED_MAX + 3);
    functions_open_gate();
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(tenrec_future_wait(f[i], CLUSTER_LONG_MS, NULL), TENREC_OK);
        tenrec_future_drop(f[i]);
    }
    tenrec_future_drop(held);
    cluster_close(&two, TENREC_GRACEFUL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
