/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_test.c - durations of calls as a value and for observers, on the backend named in argv.
 */
#include <tenrec/observe.h>

#include "core/base/clock.h"
#include "observe/metrics/metrics.h"
#include "rpc/call/observe.h"

#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include <stdlib.h>

static struct cluster two;

static void open_two(const char *durations)
{
    const char *const extra[] = { durations, "worker.num_worker_threads=2", NULL };

    cluster_open(&two, 2, extra, functions_register);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

static const char *field_text(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    assert_non_null(v);
    assert_int_equal(v->type, TENREC_VALUE_TEXT);
    return v->u.text;
}

static int64_t field_int(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    assert_non_null(v);
    assert_int_equal(v->type, TENREC_VALUE_INT);
    return v->u.integer;
}

/* The calls of a function with that error, 0 if there is no series of them; their buckets sum up.
 */
static int64_t count_of(const char *to, const char *side, const char *function, const char *error)
{
    const struct tenrec_value *calls, *bucket;
    struct tenrec_value *all = NULL;
    int64_t n = 0, sum = 0;
    tenrec_error err;

    assert_status(
        tenrec_worker_inspect(two.worker[0], to, TENREC_INSPECT_METRICS, NULL, &all, &err), &err);
    calls = tenrec_value_find(all, "calls");
    assert_non_null(calls);
    for (size_t i = 0; i < calls->n; i++) {
        const struct tenrec_value *row = &calls->u.array[i];

        if (strcmp(field_text(row, "side"), side) != 0 ||
            strcmp(field_text(row, "function"), function) != 0 ||
            strcmp(field_text(row, "error"), error) != 0)
            continue;
        n += field_int(row, "count");
        bucket = tenrec_value_find(row, "buckets");
        for (size_t k = 0; k < bucket->n; k++)
            sum += bucket->u.array[k].u.integer;
    }
    assert_int_equal(n, sum);
    tenrec_value_drop(all);
    return n;
}

/* A callee counts after it has sent the answer. */
static void await_count(const char *to, const char *side, const char *function, const char *error,
                        int64_t n)
{
    const uint64_t until = clock_deadline_ms(CLUSTER_LONG_MS);

    while (count_of(to, side, function, error) != n)
        assert_false(clock_passed(until));
}

/* Returns the name of the error. */
static const char *call_fails(void)
{
    struct tenrec_value arg = tenrec_value_text("on purpose"), *ret = NULL;
    tenrec_error err;

    assert_int_not_equal(
        tenrec_rpc_sync(two.worker[0], "worker1", "fail", &arg, 1, NULL, &ret, &err), TENREC_OK);
    return tenrec_status_name(err.code);
}

static void calls_are_counted_on_both_sides_by_function_and_error(void **state)
{
    const char *error;

    (void)state;
    open_two("observe.durations=true");
    for (int i = 0; i < 5; i++)
        functions_must_call_add(two.worker[0], "worker1");
    error = call_fails();
    assert_int_equal(count_of(NULL, "client", "add", ""), 5);
    assert_int_equal(count_of(NULL, "client", "fail", ""), 0);
    assert_int_equal(count_of(NULL, "client", "fail", error), 1);
    await_count("worker1", "server", "add", "", 5);
    await_count("worker1", "server", "fail", error, 1);
    close_two();
}

/* Series outlive workers, so the counts continue. */
static void nothing_is_counted_until_it_is_turned_on(void **state)
{
    int64_t before;

    (void)state;
    open_two("observe.durations=false");
    before = count_of(NULL, "client", "add", "");
    functions_must_call_add(two.worker[0], "worker1");
    assert_int_equal(count_of(NULL, "client", "add", ""), before);
    observe_turn(two.worker[0], OBSERVER_DURATIONS, true);
    functions_must_call_add(two.worker[0], "worker1");
    assert_int_equal(count_of(NULL, "client", "add", ""), before + 1);
    observe_turn(two.worker[0], OBSERVER_DURATIONS, false);
    functions_must_call_add(two.worker[0], "worker1");
    assert_int_equal(count_of(NULL, "client", "add", ""), before + 1);
    close_two();
}

static void a_timeout_is_counted_as_such(void **state)
{
    const struct tenrec_call_options soon = { .size = sizeof soon, .timeout_ms = 1 };
    struct tenrec_future *held;
    struct tenrec_value *ret = NULL;
    tenrec_error err;

    (void)state;
    open_two("observe.durations=true");
    held = functions_hold(two.worker[0], "worker1");
    assert_int_equal(
        tenrec_rpc_sync(two.worker[0], "worker1", "wait_gate", NULL, 0, &soon, &ret, &err),
        TENREC_ETIMEDOUT);
    assert_int_equal(count_of(NULL, "client", "wait_gate", "ETIMEDOUT"), 1);
    functions_open_gate();
    assert_status(tenrec_future_wait(held, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(held);
    close_two();
}

static bool has_series(const struct tenrec_snapshot *all, const char *worker, const char *peer)
{
    for (size_t i = 0; i < all->n_series; i++) {
        const struct tenrec_series *s = &all->series[i];

        if (s->kind == TENREC_SPAN_CLIENT && s->n > 0 && strcmp(s->worker, worker) == 0 &&
            strcmp(s->function, "add") == 0 && strcmp(s->peer, peer) == 0)
            return true;
    }
    return false;
}

static bool has_reading(const struct tenrec_snapshot *all, const char *worker, const char *key)
{
    for (size_t i = 0; i < all->n_readings; i++)
        if (strcmp(all->readings[i].worker, worker) == 0 && strcmp(all->readings[i].key, key) == 0)
            return true;
    return false;
}

static void a_snapshot_has_the_series_and_the_numbers_of_all_workers(void **state)
{
    struct tenrec_snapshot *all;
    tenrec_error err;

    (void)state;
    open_two("observe.durations=true");
    functions_must_call_add(two.worker[0], "worker1");
    assert_status(snapshot_make(&all, &err), &err);
    assert_true(has_series(all, "worker0", "worker1"));
    assert_true(has_reading(all, "worker0", "group.size"));
    assert_true(has_reading(all, "worker1", "calls.made"));
    snapshot_drop(all);
    close_two();
    assert_status(snapshot_make(&all, &err), &err);
    assert_true(has_series(all, "worker0", "worker1"));
    assert_int_equal(all->n_readings, 0); /* no worker runs */
    snapshot_drop(all);
}

static void a_mistake_in_the_section_stops_no_worker(void **state)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    (void)state;
    assert_status(tenrec_config_set(config, "observe", "{metrisc: nowhere}", &err), &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_on_both_sides_by_function_and_error),
        cmocka_unit_test(nothing_is_counted_until_it_is_turned_on),
        cmocka_unit_test(a_timeout_is_counted_as_such),
        cmocka_unit_test(a_snapshot_has_the_series_and_the_numbers_of_all_workers),
        cmocka_unit_test(a_mistake_in_the_section_stops_no_worker),
    };

    if (argc > 1)
        cluster_use(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
