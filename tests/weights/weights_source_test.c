/* SPDX-License-Identifier: Apache-2.0 */
/* Weights whose sources change: readers that pass them on, publishers that withdraw, race, or end;
 * over the backend in argv. */
#include "../testing.h"
#include "weights_support.h"

enum { N = 4, TENSORS = 600, VERSIONS = 12 };

static struct cluster c;
static struct tenrec_weights *s[N];
static struct tenrec_tensor *m[N];
static const int64_t shape[] = { 40, 30 }, zero[] = { 0, 0 };

static void open_all(void)
{
    cluster_open(&c, N, NULL, NULL);
    for (size_t i = 0; i < N; i++) {
        s[i] = open_set(c.worker[i]);
        m[i] = matrix_new(shape[0], shape[1]);
    }
}

static void close_sets(void)
{
    for (size_t i = 0; i < N; i++) {
        tenrec_weights_close(s[i]);
        tenrec_tensor_drop(m[i]);
    }
}

static void close_all(void)
{
    close_sets();
    cluster_close(&c, TENREC_GRACEFUL);
}

static void publish_in_place(int64_t version)
{
    const struct tenrec_weights_options o = { .size = sizeof o, .flags = TENREC_WEIGHTS_IN_PLACE };
    const struct tenrec_weights_box b = whole("m", m[0]);
    tenrec_error err;

    matrix_fill(m[0], shape, zero, version);
    assert_status(tenrec_weights_publish(s[0], version, &b, 1, &o, &err), &err);
}

static void withdraw(size_t i, int64_t version)
{
    tenrec_error err;

    assert_status(tenrec_weights_withdraw(s[i], version, CLUSTER_LONG_MS, &err), &err);
}

static void pull_at(size_t i, int64_t version)
{
    tenrec_error err;

    assert_status(pull(s[i], version, m[i], NULL, &err), &err);
    assert_true(matrix_is(m[i], shape, zero, version));
}

TEST_WITH(weights_come_from_a_reader_when_the_publisher_has_withdrawn, open_all, close_all)
{
    tenrec_error err;

    assert_status(publish(s[0], 1, m[0], &err), &err);
    pull_at(1, 1);
    withdraw(0, 1);
    pull_at(2, 1);
    withdraw(1, 1);
    pull_at(3, 1);
    withdraw(2, 1);
    withdraw(3, 1);
    assert_int_equal(pull(s[1], 1, m[1], NULL, &err), TENREC_ESTALE);
    assert_text_has(err.text, "version 1 of 'policy' has no holder any more");
}

TEST_WITH(weights_in_place_are_the_memory_of_the_publisher, open_all, close_all)
{
    const struct tenrec_weights_options o = { .size = sizeof o, .flags = TENREC_WEIGHTS_IN_PLACE };
    const struct tenrec_weights_box b = whole("m", m[0]);
    tenrec_error err;

    publish_in_place(1);
    pull_at(1, 1);
    assert_int_equal(tenrec_weights_publish(s[0], 2, &b, 1, &o, &err), TENREC_EBUSY);
    assert_text_has(err.text, "box 0 ('m'): its memory is that of version 1: withdraw it first");
    assert_int_equal(pull(s[0], 1, m[0], NULL, &err), TENREC_EBUSY);
    withdraw(0, 1);
    publish_in_place(2);
    pull_at(1, 2);
    pull_at(2, 2);
    assert_int_equal(tenrec_weights_withdraw(s[0], 1, CLUSTER_LONG_MS, &err), TENREC_ENOTFOUND);
    withdraw(0, 2);
}

TEST_WITH(weights_pull_into_memory_that_is_read_ends_its_version_first, open_all, close_all)
{
    tenrec_error err;

    for (int64_t version = 1; version < 5; version++) {
        assert_status(publish(s[0], version, m[0], &err), &err);
        for (size_t i = 1; i < N; i++)
            pull_at(i, version);
    }
    for (size_t i = 1; i < N; i++)
        assert_int_equal(info_of(c.worker[i], "weights.num_editions"), 1);
}

/* A pull has read the memory, and its bytes have arrived by shared memory or a socket since: TSan
 * does not see that order. */
__attribute__((no_sanitize("thread"))) static void change_byte(struct tenrec_tensor *t)
{
    ((char *)tenrec_tensor_data(t))[777] ^= 1;
}

TEST_WITH(weights_that_changed_since_their_checksum_are_refused, open_all, close_all)
{
    tenrec_error err;

    publish_in_place(1);
    change_byte(m[0]);
    assert_int_equal(pull(s[1], 1, m[1], NULL, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "tensor 'm' of version 1 has not the checksum that was published");
    change_byte(m[0]);
    pull_at(1, 1);
    withdraw(0, 1);
}

/* Each pull has several buckets; each reader but the first reads from the one before. */
TEST_WITH(weights_of_several_buckets_pass_from_reader_to_reader, open_all, close_all)
{
    static const int64_t large[] = { 1500, 1000 };
    struct tenrec_tensor *t[N];
    tenrec_error err;

    for (size_t i = 0; i < N; i++) {
        t[i] = matrix_new(large[0], large[1]);
        assert_status(i ? pull(s[i], 1, t[i], NULL, &err) : publish(s[0], 1, t[0], &err), &err);
        assert_true(matrix_is(t[i], large, zero, 1));
        if (i > 0)
            withdraw(i - 1, 1);
    }
    withdraw(N - 1, 1);
    for (size_t i = 0; i < N; i++)
        tenrec_tensor_drop(t[i]);
}

TEST_WITH(weights_version_of_a_worker_is_that_of_its_latest_publish_or_pull, open_all, close_all)
{
    tenrec_error err;

    assert_int_equal(info_of(c.worker[1], "weights.version"), 0);
    publish_in_place(7);
    pull_at(1, 7);
    assert_int_equal(info_of(c.worker[0], "weights.version"), 7);
    assert_int_equal(info_of(c.worker[1], "weights.version"), 7);
    assert_int_equal(info_of(c.worker[2], "weights.version"), 0);
    withdraw(0, 7);
    publish_in_place(8);
    assert_int_equal(pull(s[2], 7, m[2], NULL, &err), TENREC_ESTALE);
    assert_int_equal(info_of(c.worker[0], "weights.version"), 8);
    assert_int_equal(info_of(c.worker[2], "weights.version"), 0);
    withdraw(0, 8);
}

/* ---- races ----------------------------------------------------------------------------------- */

struct racing {
    pthread_t thread;
    size_t at;
    tenrec_status st;
    tenrec_error err;
};

static void *race_run(void *arg)
{
    struct racing *r = arg;
    const struct tenrec_weights_box b = whole("m", m[r->at]);

    r->st = tenrec_weights_publish(s[r->at], 1, &b, 1, NULL, &r->err);
    return NULL;
}

TEST_WITH(weights_of_two_publishers_that_race_are_those_of_one, open_all, close_all)
{
    struct racing r[2] = { { .at = 1 }, { .at = 2 } };
    size_t won;

    for (size_t i = 0; i < 2; i++)
        matrix_fill(m[r[i].at], shape, zero, (int64_t)(100 + i));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&r[i].thread, NULL, race_run, &r[i]), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(r[i].thread, NULL), 0);
    won = r[0].st == TENREC_OK ? 0 : 1;
    assert_status(r[won].st, &r[won].err);
    assert_int_equal(r[1 - won].st, TENREC_EEXIST);
    for (size_t i = 0; i < N; i += N - 1) {
        tenrec_error err;
        assert_status(pull(s[i], 1, m[i], NULL, &err), &err);
        assert_true(matrix_is(m[i], shape, zero, (int64_t)(100 + won)));
    }
}

/* ---- many versions, to readers that are never the same step -------------------------------- */

static char names[TENSORS][8];

static struct tenrec_weights_box *boxes_new(void)
{
    struct tenrec_weights_box *b = calloc(TENSORS, sizeof *b);

    for (int i = 0; i < TENSORS; i++)
        b[i] = whole(names[i], matrix_new(3, 5));
    return b;
}

static void boxes_free(struct tenrec_weights_box *b)
{
    for (int i = 0; i < TENSORS; i++)
        tenrec_tensor_drop(b[i].tensor);
    free(b);
}

struct generator {
    pthread_t thread;
    struct tenrec_weights *s;
    struct tenrec_weights_box *b;
    int64_t have;
    tenrec_status st;
    tenrec_error err;
    bool mixed;
};

static void *generate(void *arg)
{
    struct generator *g = arg;
    const int64_t small[] = { 3, 5 };

    while (g->st == TENREC_OK && g->have < VERSIONS) {
        const struct tenrec_weights_options o = { .size = sizeof o,
                                                  .after = g->have,
                                                  .timeout_ms = CLUSTER_LONG_MS };
        g->st =
            tenrec_weights_pull(g->s, TENREC_WEIGHTS_LATEST, g->b, TENSORS, &o, &g->have, &g->err);
        for (int i = 0; i < TENSORS && g->st == TENREC_OK; i++)
            g->mixed |= !matrix_is(g->b[i].tensor, small, zero, g->have * 1000 + i);
    }
    return NULL;
}

static void publish_all(int64_t version, const struct tenrec_weights_box *b)
{
    const int64_t small[] = { 3, 5 };
    tenrec_error err;

    for (int i = 0; i < TENSORS; i++)
        matrix_fill(b[i].tensor, small, zero, version * 1000 + i);
    assert_status(tenrec_weights_publish(s[0], version, b, TENSORS, NULL, &err), &err);
}

TEST_WITH(weights_of_many_versions_are_never_mixed, open_all, close_all)
{
    struct tenrec_weights_box *from;
    struct generator g[N - 1] = { 0 };

    for (int i = 0; i < TENSORS; i++)
        snprintf(names[i], sizeof names[i], "t%d", i);
    from = boxes_new();
    for (size_t i = 0; i < N - 1; i++) {
        g[i].s = s[i + 1];
        g[i].b = boxes_new();
        assert_int_equal(pthread_create(&g[i].thread, NULL, generate, &g[i]), 0);
    }
    for (int64_t version = 1; version <= VERSIONS; version++)
        publish_all(version, from);
    for (size_t i = 0; i < N - 1; i++) {
        assert_int_equal(pthread_join(g[i].thread, NULL), 0);
        assert_status(g[i].st, &g[i].err);
        assert_int_equal(g[i].have, VERSIONS);
        assert_false(g[i].mixed);
        boxes_free(g[i].b);
    }
    assert_becomes(info_of(c.worker[0], "weights.num_leases") == 0);
    assert_int_equal(info_of(c.worker[0], "weights.num_versions"), 1);
    boxes_free(from);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
