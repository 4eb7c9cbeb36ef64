/* SPDX-License-Identifier: Apache-2.0 */
/* Weights while messages are late, and while workers end; the backend in argv is a faulty one. */
#include "../testing.h"
#include "weights_support.h"

#include <stdio.h>

enum { N = 3 };

static struct cluster c;
static struct tenrec_weights *s[N];
static struct tenrec_tensor *m[N];
static const int64_t shape[] = { 40, 30 }, zero[] = { 0, 0 };

static void open_with(const char *rules)
{
    char option[192];
    const char *extra[] = { option, NULL };

    snprintf(option, sizeof option, "backends.%s.options.rules=%s", cluster_backend(), rules);
    cluster_open(&c, N, extra, NULL);
    for (size_t i = 0; i < N; i++) {
        s[i] = open_set(c.worker[i]);
        m[i] = matrix_new(shape[0], shape[1]);
    }
}

static void close_all(void)
{
    for (size_t i = 0; i < N; i++) {
        tenrec_weights_close(s[i]);
        tenrec_tensor_drop(m[i]);
    }
    for (size_t i = 0; i < N; i++)
        tenrec_worker_drop(c.worker[i]);
}

/* The first rule that hits a message handles it: calls are no transfers. */
#define BUT_CALLS "{ do: delay, on: [CALL, ONE_WAY_CALL], by: 1ms }, "

static void transfers_are_late(void)
{
    open_with("[" BUT_CALLS "{ do: delay, on: [REQUEST], by: 300ms }]");
}

static void publish_as(int64_t version, uint32_t flags)
{
    const struct tenrec_weights_options o = { .size = sizeof o, .flags = flags };
    const struct tenrec_weights_box b = whole("m", m[0]);
    tenrec_error err;

    matrix_fill(m[0], shape, zero, version);
    assert_status(tenrec_weights_publish(s[0], version, &b, 1, &o, &err), &err);
}

static bool leases_are(int64_t n)
{
    return info_of(c.worker[0], "weights.num_leases") == n;
}

TEST_WITH(weights_under_a_lease_outlive_newer_ones, transfers_are_late, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1] };

    publish_as(1, 0);
    pull_begin(&p);
    assert_becomes(leases_are(1));
    publish_as(2, 0);
    publish_as(3, 0);
    assert_int_equal(info_of(c.worker[0], "weights.num_versions"), 2);
    pull_end(&p);
    assert_status(p.st, &p.err);
    assert_int_equal(p.got, 1);
    assert_true(matrix_is(m[1], shape, zero, 1));
    publish_as(4, 0);
    assert_int_equal(info_of(c.worker[0], "weights.num_editions"), 1);
}

static void transfers_are_lost(void)
{
    open_with("[" BUT_CALLS "{ do: drop, on: [REQUEST] }]");
}

/* The limit is long enough to see the lease on a loaded machine. */
TEST_WITH(weights_lease_ends_with_the_limit_of_its_reader, transfers_are_lost, close_all)
{
    const int64_t limit_ms = 1000 * (int64_t)testing_slow();
    struct pulling p = { .s = s[1], .t = m[1], .timeout_ms = limit_ms };

    publish_as(1, 0);
    pull_begin(&p);
    assert_becomes(leases_are(1));
    pull_end(&p);
    assert_int_not_equal(p.st, TENREC_OK);
    assert_becomes(leases_are(0));
    publish_as(2, 0);
    assert_int_equal(info_of(c.worker[0], "weights.num_editions"), 1);
}

TEST_WITH(weights_that_were_withdrawn_are_stale_to_a_slow_reader, transfers_are_late, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1], .version = 1 };
    tenrec_error err;

    publish_as(1, TENREC_WEIGHTS_IN_PLACE);
    pull_begin(&p);
    assert_becomes(leases_are(1));
    assert_status(tenrec_weights_withdraw(s[0], 1, CLUSTER_LONG_MS, &err), &err);
    matrix_fill(m[0], shape, zero, 2); /* the trainer goes on */
    pull_end(&p);
    assert_int_equal(p.st, TENREC_ESTALE);
    assert_int_equal(p.got, 0);
    assert_true(leases_are(0));
}

TEST_WITH(weights_of_a_slow_reader_are_those_of_the_next_version, transfers_are_late, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1] };
    tenrec_error err;

    publish_as(1, TENREC_WEIGHTS_IN_PLACE);
    pull_begin(&p);
    assert_becomes(leases_are(1));
    assert_status(tenrec_weights_withdraw(s[0], 1, CLUSTER_LONG_MS, &err), &err);
    publish_as(2, TENREC_WEIGHTS_IN_PLACE);
    pull_end(&p);
    assert_status(p.st, &p.err);
    assert_int_equal(p.got, 2);
    assert_true(matrix_is(m[1], shape, zero, 2));
}

/* Two readers at once: the second reads from the first. */
static void begin_two(struct pulling p[2])
{
    p[0] = (struct pulling){ .s = s[1], .t = m[1], .version = 1 };
    p[1] = (struct pulling){ .s = s[2], .t = m[2], .version = 1 };
    publish_as(1, 0);
    pull_begin(&p[0]);
    assert_becomes(leases_are(1));
    pull_begin(&p[1]);
    assert_becomes(leases_are(2));
}

TEST_WITH(weights_are_passed_on_while_they_arrive, transfers_are_late, close_all)
{
    struct pulling p[2];

    begin_two(p);
    for (size_t i = 0; i < 2; i++) {
        pull_end(&p[i]);
        assert_status(p[i].st, &p[i].err);
        assert_true(matrix_is(m[i + 1], shape, zero, 1));
    }
}

TEST_WITH(weights_come_from_the_publisher_when_a_reader_ends, transfers_are_late, close_all)
{
    struct pulling p[2];
    tenrec_error err;

    begin_two(p);
    assert_status(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    pull_end(&p[0]);
    assert_int_not_equal(p[0].st, TENREC_OK);
    pull_end(&p[1]);
    assert_status(p[1].st, &p[1].err);
    assert_true(matrix_is(m[2], shape, zero, 1));
}

TEST_WITH(weights_pull_ends_when_its_keeper_ends, transfers_are_late, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1], .after = 1 };
    tenrec_error err;

    publish_as(1, 0);
    pull_begin(&p);
    assert_status(tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    pull_end(&p);
    assert_int_not_equal(p.st, TENREC_OK);
    assert_int_not_equal(p.st, TENREC_ETIMEDOUT);
}

static void transfers_fail_once(void)
{
    open_with("[" BUT_CALLS "{ do: fail, on: [REQUEST], times: 1 }]");
}

TEST_WITH(weights_arrive_although_a_transfer_fails, transfers_fail_once, close_all)
{
    tenrec_error err;

    for (int64_t version = 1; version < 4; version++) {
        publish_as(version, 0);
        for (size_t i = 1; i < N; i++) {
            assert_status(pull(s[i], version, m[i], NULL, &err), &err);
            assert_true(matrix_is(m[i], shape, zero, version));
        }
    }
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
