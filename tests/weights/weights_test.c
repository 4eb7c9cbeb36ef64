/* SPDX-License-Identifier: Apache-2.0 */
/* Weights between a trainer, which keeps the record, and generators, over the backend in argv. */
#include "../testing.h"
#include "weights_support.h"

enum { N = 4, ROWS = 64, COLUMNS = 48 };

static struct cluster c;
static struct tenrec_weights *s[N];
static struct tenrec_tensor *m[N];
static const int64_t shape[] = { ROWS, COLUMNS }, zero[] = { 0, 0 };

static void open_all(void)
{
    cluster_open(&c, N, NULL, NULL);
    for (size_t i = 0; i < N; i++) {
        s[i] = open_set(c.worker[i]);
        m[i] = matrix_new(ROWS, COLUMNS);
    }
}

static void close_all(void)
{
    for (size_t i = 0; i < N; i++) {
        tenrec_weights_close(s[i]);
        tenrec_tensor_drop(m[i]);
    }
    cluster_close(&c, TENREC_GRACEFUL);
}

static void publish_first(int64_t version)
{
    tenrec_error err;

    assert_status(publish(s[0], version, m[0], &err), &err);
}

static void pull_at(size_t i, int64_t version)
{
    tenrec_error err;
    int64_t got;

    assert_status(pull(s[i], version, m[i], &got, &err), &err);
    assert_true(got > 0 && matrix_is(m[i], shape, zero, got));
}

/* ---- versions ---------------------------------------------------------------------------- */

TEST_WITH(weights_pull_has_the_elements_that_were_published, open_all, close_all)
{
    char state[32];

    publish_first(7);
    memset(tenrec_tensor_data(m[0]), 0, 64); /* the set has a copy */
    for (size_t i = 1; i < N; i++)
        pull_at(i, TENREC_WEIGHTS_LATEST);
    assert_string_equal(state_of(s[1], "worker3", 7, state), "has");
    assert_string_equal(state_of(s[1], "worker0", 7, state), "publishes");
}

TEST_WITH(weights_pull_waits_for_a_version_that_is_newer, open_all, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1], .after = 1 };

    publish_first(1);
    pull_at(1, 1);
    pull_begin(&p);
    publish_first(2);
    pull_end(&p);
    assert_status(p.st, &p.err);
    assert_int_equal(p.got, 2);
    assert_true(matrix_is(m[1], shape, zero, 2));
}

TEST_WITH(weights_pull_waits_for_its_version, open_all, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1], .version = 3 };

    pull_begin(&p);
    publish_first(1);
    publish_first(3);
    pull_end(&p);
    assert_status(p.st, &p.err);
    assert_int_equal(p.got, 3);
    assert_true(matrix_is(m[1], shape, zero, 3));
}

TEST_WITH(weights_pull_ends_with_its_limit, open_all, close_all)
{
    struct pulling p = { .s = s[1], .t = m[1], .timeout_ms = 50 };

    pull_begin(&p);
    pull_end(&p);
    assert_int_equal(p.st, TENREC_ETIMEDOUT);
    assert_int_equal(p.got, 0);
}

TEST_WITH(weights_pull_of_a_replaced_version_is_stale, open_all, close_all)
{
    tenrec_error err;

    publish_first(1);
    publish_first(2);
    assert_int_equal(pull(s[1], 1, m[1], NULL, &err), TENREC_ESTALE);
    assert_text_has(err.text, "version 1 of 'policy' has been replaced by a newer one");
}

TEST_WITH(weights_versions_only_grow, open_all, close_all)
{
    tenrec_error err;

    publish_first(5);
    assert_int_equal(publish(s[1], 5, m[1], &err), TENREC_EEXIST);
    assert_text_has(err.text, "version 5 of 'policy' is not newer than version 5");
    assert_int_equal(publish(s[1], 4, m[1], &err), TENREC_EEXIST);
    pull_at(2, TENREC_WEIGHTS_LATEST);
}

TEST_WITH(weights_copies_of_replaced_versions_are_freed, open_all, close_all)
{
    for (int64_t version = 1; version < 10; version++) {
        publish_first(version);
        pull_at(1, TENREC_WEIGHTS_LATEST);
    }
    assert_int_equal(info_of(c.worker[0], "weights.num_editions"), 1);
    assert_int_equal(info_of(c.worker[0], "weights.num_versions"), 1);
    assert_int_equal(info_of(c.worker[0], "weights.num_leases"), 0);
    assert_int_equal(info_of(c.worker[1], "weights.num_editions"), 1);
}

/* ---- reports ----------------------------------------------------------------------------- */

TEST_WITH(weights_reports_come_back_to_the_publisher, open_all, close_all)
{
    struct tenrec_value *view = NULL;
    tenrec_error err, why;
    char state[32];

    publish_first(1);
    pull_at(1, TENREC_WEIGHTS_LATEST);
    pull_at(2, TENREC_WEIGHTS_LATEST);
    tenrec_fail(&why, TENREC_EINVAL, "no layer 'm' here");
    assert_status(tenrec_weights_report(s[1], 1, NULL, &err), &err);
    assert_status(tenrec_weights_report(s[2], 1, &why, &err), &err);
    assert_status(tenrec_weights_wait(s[0], 1, 2, CLUSTER_LONG_MS, &view, &err), &err);
    tenrec_value_drop(view);
    assert_string_equal(state_of(s[0], "worker1", 1, state), "applied");
    assert_string_equal(state_of(s[0], "worker2", 1, state), "failed");
    assert_true(error_is(s[0], "worker2", "no layer 'm' here"));
    assert_int_equal(tenrec_weights_wait(s[0], 1, 3, 50, &view, &err), TENREC_ETIMEDOUT);
    assert_null(view);
}

TEST_WITH(weights_report_counts_when_its_worker_has_left, open_all, close_all)
{
    tenrec_error err;
    char state[32];

    publish_first(1);
    pull_at(1, TENREC_WEIGHTS_LATEST);
    assert_status(tenrec_weights_report(s[1], 1, NULL, &err), &err);
    tenrec_weights_close(s[1]);
    s[1] = NULL;
    assert_status(tenrec_weights_wait(s[0], 1, 1, CLUSTER_LONG_MS, NULL, &err), &err);
    pull_at(2, 1); /* not from it */
    publish_first(2);
    assert_becomes(strcmp(state_of(s[0], "worker1", 1, state), "") == 0);
}

TEST_WITH(weights_report_of_what_was_not_pulled_is_refused, open_all, close_all)
{
    tenrec_error err;

    publish_first(1);
    assert_int_equal(tenrec_weights_report(s[1], 1, NULL, &err), TENREC_ENOTFOUND);
    assert_text_has(err.text, "'worker1' does not have version 1 of 'policy'");
}

TEST_WITH(weights_wait_shows_the_tensors, open_all, close_all)
{
    struct tenrec_value *view = NULL;
    const struct tenrec_value *t;
    tenrec_error err;

    publish_first(1);
    assert_status(tenrec_weights_wait(s[2], 1, 0, CLUSTER_LONG_MS, &view, &err), &err);
    assert_int_equal(tenrec_value_find(view, "version")->u.integer, 1);
    t = tenrec_value_find(view, "tensors");
    assert_int_equal(t->n, 1);
    assert_string_equal(tenrec_value_find(t->u.array, "name")->u.text, "m");
    assert_string_equal(tenrec_value_find(t->u.array, "dtype")->u.text, "int32");
    assert_int_equal(tenrec_value_find(t->u.array, "shape")->u.array[0].u.integer, ROWS);
    tenrec_value_drop(view);
}

/* ---- boxes ------------------------------------------------------------------------------- */

struct sharing {
    pthread_t thread;
    size_t at;
    int64_t version;
    struct tenrec_weights_options o;
    tenrec_status st;
    tenrec_error err;
};

/* One of two publishers has the upper rows, the other the lower ones and a tensor of its own. */
static void *share_run(void *arg)
{
    struct sharing *p = arg;
    const int64_t from[] = { p->at * ROWS / 2, 0 };
    struct tenrec_tensor *t = matrix_new(ROWS / 2, COLUMNS), *own = matrix_new(2, 3);
    const struct tenrec_weights_box b[] = { part("m", t, shape, from), whole("own", own) };

    matrix_fill(t, shape, from, p->version);
    matrix_fill(own, (int64_t[]){ 2, 3 }, zero, p->version);
    p->st = tenrec_weights_publish(s[p->at], p->version, b, p->at ? 2 : 1, &p->o, &p->err);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(own);
    return NULL;
}

static struct sharing sharing(size_t at, int64_t version, int64_t timeout_ms)
{
    return (struct sharing){ .at = at,
                             .version = version,
                             .o = { .size = sizeof(struct tenrec_weights_options),
                                    .publishers = 2,
                                    .timeout_ms = timeout_ms } };
}

static void share_by_two(int64_t version)
{
    struct sharing p[2] = { sharing(0, version, CLUSTER_LONG_MS),
                            sharing(1, version, CLUSTER_LONG_MS) };

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&p[i].thread, NULL, share_run, &p[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(p[i].thread, NULL), 0);
        assert_status(p[i].st, &p[i].err);
    }
}

TEST_WITH(weights_of_two_publishers_are_one_version, open_all, close_all)
{
    struct tenrec_tensor *own = matrix_new(2, 3);
    const struct tenrec_weights_box b[] = { whole("own", own), whole("m", m[2]) };
    tenrec_error err;

    share_by_two(1);
    assert_status(tenrec_weights_pull(s[2], 1, b, 2, NULL, NULL, &err), &err);
    assert_true(matrix_is(m[2], shape, zero, 1));
    assert_true(matrix_is(own, (int64_t[]){ 2, 3 }, zero, 1));
    tenrec_tensor_drop(own);
}

TEST_WITH(weights_box_across_the_parts_of_two_publishers_is_whole, open_all, close_all)
{
    const int64_t at[] = { ROWS / 2 - 5, 7 };
    struct tenrec_tensor *t = matrix_new(11, 20);
    const struct tenrec_weights_box b = part("m", t, shape, at);
    tenrec_error err;

    share_by_two(1);
    for (size_t i = 0; i < N; i++) {
        memset(tenrec_tensor_data(t), 0, (size_t)tenrec_tensor_bytes(t));
        assert_status(tenrec_weights_pull(s[i], 1, &b, 1, NULL, NULL, &err), &err);
        assert_true(matrix_is(t, shape, at, 1));
    }
    tenrec_tensor_drop(t);
}

TEST_WITH(weights_without_all_parts_are_not_visible, open_all, close_all)
{
    struct sharing p = sharing(0, 1, 50);
    struct pulling reader = { .s = s[2], .t = m[2], .timeout_ms = 50 };

    share_run(&p);
    assert_int_equal(p.st, TENREC_ETIMEDOUT);
    pull_begin(&reader);
    pull_end(&reader);
    assert_int_equal(reader.st, TENREC_ETIMEDOUT);
    share_by_two(1); /* what the first had published does not count */
    pull_at(2, TENREC_WEIGHTS_LATEST);
}

TEST_WITH(weights_publishers_who_disagree_are_refused, open_all, close_all)
{
    struct sharing p = sharing(0, 1, CLUSTER_LONG_MS), other = sharing(1, 1, CLUSTER_LONG_MS);

    other.o.publishers = 3;
    assert_int_equal(pthread_create(&p.thread, NULL, share_run, &p), 0);
    assert_becomes(info_of(c.worker[0], "weights.num_versions") == 1);
    share_run(&other);
    assert_int_equal(other.st, TENREC_EINVAL);
    assert_text_has(other.err.text, "has 2 publishers, and 'worker1' names 3");
    other.o.publishers = 2;
    share_run(&other);
    assert_status(other.st, &other.err);
    assert_int_equal(pthread_join(p.thread, NULL), 0);
    assert_status(p.st, &p.err);
}

TEST_WITH(weights_pull_refuses_boxes_that_were_not_published, open_all, close_all)
{
    struct tenrec_tensor *t = matrix_new(2, 2), *wrong = NULL;
    const int64_t beyond[] = { ROWS - 1, 0 };
    struct tenrec_weights_box b = whole("x", t);
    tenrec_error err;

    publish_first(1);
    assert_int_equal(tenrec_weights_pull(s[1], 1, &b, 1, NULL, NULL, &err), TENREC_ENOTFOUND);
    assert_text_has(err.text, "no publisher has a tensor 'x'");
    b = whole("m", t);
    assert_int_equal(tenrec_weights_pull(s[1], 1, &b, 1, NULL, NULL, &err), TENREC_EINVAL);
    assert_text_has(err.text, "another shape");
    b = part("m", t, shape, beyond);
    assert_int_equal(tenrec_weights_pull(s[1], 1, &b, 1, NULL, NULL, &err), TENREC_EINVAL);
    assert_text_has(err.text,
                    "box 0 ('m'): dimension 0: 2 elements from 63 on, but the shape has 64");
    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 2, shape, &wrong, &err), &err);
    b = whole("m", wrong);
    assert_int_equal(tenrec_weights_pull(s[1], 1, &b, 1, NULL, NULL, &err), TENREC_EINVAL);
    assert_text_has(err.text, "published as int32");
    assert_int_equal(tenrec_weights_pull(s[1], 1, NULL, 0, NULL, NULL, &err), TENREC_EINVAL);
    assert_becomes(info_of(c.worker[0], "weights.num_leases") == 0);
    pull_at(1, 1);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(wrong);
}

TEST_WITH(weights_of_a_thousand_tensors_arrive, open_all, close_all)
{
    enum { TENSORS = 1000 };
    struct tenrec_weights_box *from = calloc(TENSORS, sizeof *from),
                              *to = calloc(TENSORS, sizeof *to);
    char(*name)[8] = calloc(TENSORS, sizeof *name);
    const int64_t small[] = { 3, 5 };
    tenrec_error err;

    for (int i = 0; i < TENSORS; i++) {
        snprintf(name[i], sizeof name[i], "t%d", i);
        from[i] = whole(name[i], matrix_new(3, 5));
        to[i] = whole(name[i], matrix_new(3, 5));
        matrix_fill(from[i].tensor, small, zero, i);
    }
    assert_status(tenrec_weights_publish(s[0], 1, from, TENSORS, NULL, &err), &err);
    for (size_t k = 1; k < 3; k++) {
        assert_status(tenrec_weights_pull(s[k], 1, to, TENSORS, NULL, NULL, &err), &err);
        for (int i = 0; i < TENSORS; i++) {
            assert_true(matrix_is(to[i].tensor, small, zero, i));
            memset(tenrec_tensor_data(to[i].tensor), 0, 60);
        }
    }
    for (int i = 0; i < TENSORS; i++) {
        tenrec_tensor_drop(from[i].tensor);
        tenrec_tensor_drop(to[i].tensor);
    }
    free(from);
    free(to);
    free(name);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
