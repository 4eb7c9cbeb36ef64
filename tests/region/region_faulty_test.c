/* SPDX-License-Identifier: Apache-2.0 */
/* Regions while messages are late or lost, and while workers end; the backend in argv is a faulty
 * one. */
#include "../testing.h"
#include "region_support.h"

#include <stdio.h>

static struct cluster c;
static struct tenrec_tensor *memory, *local;
static struct tenrec_region *r;
static struct tenrec_region_ref ref;

enum { N = 4096 };

static void open_of(const char *const *extra)
{
    cluster_open(&c, 2, extra, NULL);
    memory = bytes_new(N, 1);
    local = bytes_new(N, 50);
    r = region_of(c.worker[1], memory, BOTH);
    ref = ref_of(r);
}

static void open_with(const char *rules)
{
    char option[256];
    const char *extra[] = { option, NULL };

    snprintf(option, sizeof option, "backends.%s.options.rules=%s", cluster_backend(), rules);
    open_of(extra);
}

static void close_all(void)
{
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
    tenrec_tensor_drop(local);
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_drop(c.worker[i]);
}

static void requests_are_late(void)
{
    open_with("[{ do: delay, on: [REQUEST], by: 300ms }]");
}

TEST_WITH(write_that_arrives_after_a_revoke_changes_nothing, requests_are_late, close_all)
{
    struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    struct tenrec_future *f = begin(c.worker[0], &e, 1);
    tenrec_error err;

    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ESTALE);
    assert_text_has(err.text, "entry 0");
    assert_true(bytes_are(memory, 0, N, 1));
    assert_int_equal(info_of(c.worker[1], "region.stale"), 1);
    tenrec_future_drop(f);
}

/* The first write is sent twice; its second copy leaves after the next write. */
static void first_write_comes_back(void)
{
    static char outer[64];
    const char *inner = cluster_backend();
    char duplicate[160], delay[160];
    const char *extra[] = { duplicate, delay, NULL };

    snprintf(outer, sizeof outer, "two_%s", inner);
    snprintf(duplicate, sizeof duplicate,
             "backends.%s.options.rules=[{ do: duplicate, on: [BULK_WRITE], times: 1 }]", outer);
    snprintf(delay, sizeof delay,
             "backends.%s.options.rules=[{ do: delay, on: [BULK_WRITE], by: 300ms, after_messages: "
             "1, times: 1 }]",
             inner);
    cluster_use(outer);
    open_of(extra);
    cluster_use(inner);
}

TEST_WITH(write_that_arrives_again_does_not_write_again, first_write_comes_back, close_all)
{
    struct tenrec_tensor *next = bytes_new(N, 90);
    struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    tenrec_error err;

    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    assert_true(bytes_are(memory, 0, N, 50));
    e = writing(&ref, 0, N, next, 0);
    assert_status(transfer(c.worker[0], &e, 1, &err), &err);
    assert_becomes(info_of(c.worker[1], "region.repeated") == 1);
    assert_true(bytes_are(memory, 0, N, 90));
    assert_int_equal(tenrec_region_pending(r), 0);
    tenrec_tensor_drop(next);
}

static void transfers_change_places(void)
{
    open_with(
        "[{ do: reorder, on: [BULK_READ, BULK_WRITE, BULK_DONE], by: 50ms, probability: 0.5 }]");
}

TEST_WITH(revoke_among_reordered_transfers_lets_none_through, transfers_change_places, close_all)
{
    enum { EACH = N / 64 };
    struct tenrec_bulk e[64];
    struct tenrec_future *f;
    tenrec_error err;

    for (uint64_t i = 0; i < 64; i++)
        e[i] = i % 2 ? reading(&ref, i * EACH, EACH, local, i * EACH)
                     : writing(&ref, i * EACH, EACH, local, i * EACH);
    f = begin(c.worker[0], e, 64);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    memset(tenrec_tensor_data(memory), 7, N);
    if (tenrec_future_wait(f, CLUSTER_LONG_MS, &err) != TENREC_OK)
        assert_int_equal(err.code, TENREC_ESTALE);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(((unsigned char *)tenrec_tensor_data(memory))[i], 7);
    tenrec_future_drop(f);
}

static void answers_are_late(void)
{
    open_with("[{ do: delay, on: [RESPONSE], by: 300ms }]");
}

TEST_WITH(revoke_waits_for_an_answer_that_is_under_way, answers_are_late, close_all)
{
    struct tenrec_bulk e = reading(&ref, 0, N, local, 0);
    struct tenrec_future *f = begin(c.worker[0], &e, 1);
    tenrec_error err;

    assert_becomes(tenrec_region_pending(r) == 1);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_region_pending(r), 0);
    memset(tenrec_tensor_data(memory), 0, N);
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    assert_true(bytes_are(local, 0, N, 1));
    tenrec_future_drop(f);
}

static void requests_are_lost(void)
{
    open_with("[{ do: drop, on: [REQUEST] }]");
}

TEST_WITH(transfer_ends_with_its_limit_when_it_is_lost, requests_are_lost, close_all)
{
    const struct tenrec_bulk_options o = { .size = sizeof o, .timeout_ms = 50 };
    struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_bulk_async(c.worker[0], &e, 1, &o, &f, &err), &err);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "entry 0: no answer from 'worker1' to 'bulk_write'");
    tenrec_future_drop(f);
}

TEST_WITH(transfer_ends_when_its_worker_ends, answers_are_late, close_all)
{
    struct tenrec_bulk e = reading(&ref, 0, N, local, 0);
    struct tenrec_future *f = begin(c.worker[0], &e, 1);
    tenrec_error err;

    assert_status(tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    assert_int_not_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    assert_true(tenrec_future_done(f));
    assert_becomes(tenrec_region_pending(r) == 0);
    tenrec_future_drop(f);
}

static void answers_are_lost(void)
{
    open_with("[{ do: drop, on: [BULK_DONE] }]");
}

TEST_WITH(revoke_waits_for_no_answer_that_is_lost, answers_are_lost, close_all)
{
    const struct tenrec_bulk_options o = { .size = sizeof o, .timeout_ms = 50 };
    struct tenrec_bulk e = reading(&ref, 0, N, local, 0);
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_bulk_async(c.worker[0], &e, 1, &o, &f, &err), &err);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    assert_status(tenrec_region_revoke(r, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f);
}

TEST_WITH(batch_names_its_first_entry_that_failed, answers_are_late, close_all)
{
    struct tenrec_region_ref forged = ref;
    struct tenrec_bulk e[3];
    struct tenrec_future *f;
    tenrec_error err;

    forged.key[0]++;
    e[0] = reading(&ref, 0, 64, local, 0);
    e[1] = reading(&forged, 0, 64, local, 64);
    e[2] = reading(&forged, 0, 64, local, 128);
    f = begin(c.worker[0], e, 3);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPERM);
    assert_text_has(err.text, "entry 1");
    assert_true(bytes_are(local, 0, 64, 1) && bytes_are(local, 64, 128, 50 + 64));
    tenrec_future_drop(f);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
