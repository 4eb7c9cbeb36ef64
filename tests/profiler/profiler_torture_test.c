/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_torture_test.c - a recorded call while each allocation and each send
 * fails once.
 *
 * Recording takes nothing from the call: it ends as it would, what could not be
 * kept is counted, and the next session is whole. */
#include "../support/cluster.h"
#include "../support/torture.h"
#include "../testing.h"
#include "profiler_functions.h"

#include <tenrec/profiler.h>

enum { SHORT_MS = 100, EVENTS = 6 };

static struct cluster three;

static void open_three(void)
{
    torture_register();
    cluster_open(&three, 3, NULL, profiler_functions_register);
}

static void close_three(void)
{
    cluster_close(&three, TENREC_GRACEFUL);
}

/* worker0 -> worker1 -> worker2: three calls' worth of events. */
static tenrec_status nested(int64_t timeout_ms, tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_text("worker2"),
                                         tenrec_value_text("marked") };
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };

    return tenrec_rpc_sync(three.worker[0], "worker1", "through", args, 2, &o, NULL, err);
}

static tenrec_status recorded(void *arg, tenrec_error *err)
{
    struct tenrec_profiler *p = NULL;
    tenrec_status st, call = TENREC_OK;

    (void)arg;
    torture_on();
    st = tenrec_profiler_start(three.worker[0], NULL, &p, err);
    if (st == TENREC_OK) {
        call = st = nested(SHORT_MS, err);
        tenrec_profiler_stop(p, NULL);
    }
    torture_off();
    if (p && call == TENREC_OK && !torture_happened())
        assert_int_equal(tenrec_profiler_count(p), EVENTS);
    if (p && call == TENREC_OK)
        assert_true(tenrec_profiler_count(p) + tenrec_profiler_dropped(p) > 0);
    tenrec_profiler_drop(p);
    assert_becomes(nested(CLUSTER_LONG_MS, NULL) == TENREC_OK);
    return st;
}

TEST(profiler_harms_no_call_when_any_allocation_fails)
{
    assert_true(torture(TORTURE_ALLOCATIONS, 1, recorded, NULL) > EVENTS);
    torture(TORTURE_ALLOCATIONS, 3, recorded, NULL);
}

TEST(profiler_harms_no_call_when_any_send_fails)
{
    /* Four, and more when the answer to a call that had timed out is sent late. */
    assert_true(torture(TORTURE_SENDS, 1, recorded, NULL) >= 4);
    torture(TORTURE_REPORTS, 1, recorded, NULL);
    torture(TORTURE_ARRIVALS, 1, recorded, NULL);
}

TEST_MAIN(cluster_use(argv[1]), open_three, close_three)
