/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier and gather over a store; ranks are threads with stores of their
 * own. Each case runs on each kind of store. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/meeting/process_group.h"

#define WORLD 4
#define SOON_MS 20 /* a wait that must end in vain */

static char url[96], path[64];
static struct tenrec_store_server *server;
static struct tenrec_store *keep; /* so that an in-process store lives on */
static tenrec_error err;
static const char *kind = "memory"; /* of store */

static void make_place(void)
{
    static int count;
    uint16_t port;

    snprintf(path, sizeof path, "/tmp/tenrec-pg-%d-%d", (int)getpid(), count);
    snprintf(url, sizeof url, "memory://pg%d", count++);
    if (strcmp(kind, "drawer") == 0)
        snprintf(url, sizeof url, "drawer://pg%d", count);
    if (strcmp(kind, "redis") == 0)
        snprintf(url, sizeof url, "%spg%d", getenv("TENREC_TEST_REDIS"), count);
    if (strcmp(kind, "etcd") == 0)
        snprintf(url, sizeof url, "%spg%d", getenv("TENREC_TEST_ETCD"), count);
    if (strcmp(kind, "file") == 0)
        snprintf(url, sizeof url, "file://%s", path);
    if (strcmp(kind, "tcp") == 0) {
        assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
        snprintf(url, sizeof url, "tcp://127.0.0.1:%u", port);
    }
    assert_status(tenrec_store_open(url, TEST_MS, &keep, &err), &err);
}

static void drop_place(void)
{
    tenrec_store_close(keep);
    tenrec_store_server_drop(server);
    server = NULL;
    unlink(path);
}

struct rank {
    int32_t rank;
    const char *name;
    tenrec_status (*run)(struct rank *r, struct tenrec_process_group *pg);
    tenrec_status st;
    tenrec_error err;
};

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct tenrec_process_group *pg = NULL;
    struct tenrec_store *s = NULL;

    r->st = tenrec_store_open(url, TEST_MS, &s, &r->err);
    if (r->st == TENREC_OK)
        r->st = tenrec_process_group_new(s, r->rank, WORLD, r->name ? r->name : "g", &pg, &r->err);
    if (r->st == TENREC_OK)
        r->st = r->run(r, pg);
    tenrec_process_group_drop(pg);
    tenrec_store_close(s);
    return NULL;
}

static void run_all(tenrec_status (*run)(struct rank *r, struct tenrec_process_group *pg))
{
    struct rank r[WORLD];
    pthread_t thread[WORLD];

    for (int i = 0; i < WORLD; i++) {
        r[i] = (struct rank){ .rank = i, .run = run };
        assert_int_equal(pthread_create(&thread[i], NULL, run_rank, &r[i]), 0);
    }
    for (int i = 0; i < WORLD; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < WORLD; i++)
        if (r[i].st != TENREC_OK)
            fail_msg("rank %d: %s", i, r[i].err.text);
}

static tenrec_status sum_ranks(struct rank *r, struct tenrec_process_group *pg)
{
    for (int round = 0; round < 5; round++) {
        const int64_t mine[] = { r->rank, round, -1 };
        int64_t sum[3] = { 0 };
        tenrec_status st =
            process_group_sum(pg, mine, 3, NULL, clock_deadline_ms(TEST_MS), sum, &r->err);
        if (st != TENREC_OK)
            return st;
        if (sum[0] != WORLD * (WORLD - 1) / 2 || sum[1] != WORLD * round || sum[2] != -WORLD)
            return tenrec_fail(&r->err, TENREC_EPROTOCOL, "round %d: got %d, %d and %d", round,
                               (int)sum[0], (int)sum[1], (int)sum[2]);
    }
    return TENREC_OK;
}

TEST_WITH(sum_is_the_same_for_all_ranks, make_place, drop_place)
{
    run_all(sum_ranks);
}

static int arrived; /* by __atomic */

static tenrec_status count_and_wait(struct rank *r, struct tenrec_process_group *pg)
{
    for (int round = 1; round <= 5; round++) {
        tenrec_status st;
        __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
        st = tenrec_process_group_barrier(pg, TEST_MS, &r->err);
        if (st != TENREC_OK)
            return st;
        if (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < round * WORLD)
            return tenrec_fail(&r->err, TENREC_EPROTOCOL, "left barrier %d too early", round);
    }
    return TENREC_OK;
}

TEST_WITH(barrier_holds_all_members_until_the_last_came, make_place, drop_place)
{
    arrived = 0;
    run_all(count_and_wait);
}

/* The same name again, by ranks that do not wait for one another between. */
TEST_WITH(group_can_be_made_again_under_its_name, make_place, drop_place)
{
    int64_t after_one, after_three;

    run_all(sum_ranks);
    assert_status(tenrec_store_num_keys(keep, TEST_MS, &after_one, &err), &err);
    run_all(sum_ranks);
    run_all(count_and_wait);
    assert_status(tenrec_store_num_keys(keep, TEST_MS, &after_three, &err), &err);
    assert_int_equal(after_one, WORLD); /* a count of lives for each rank */
    assert_int_equal(after_three, after_one);
}

TEST_WITH(groups_of_other_names_do_not_meet, make_place, drop_place)
{
    struct rank r[2 * WORLD];
    pthread_t thread[2 * WORLD];

    for (int i = 0; i < 2 * WORLD; i++) {
        r[i] = (struct rank){ .rank = i % WORLD,
                              .name = i < WORLD ? "left" : "right",
                              .run = sum_ranks };
        assert_int_equal(pthread_create(&thread[i], NULL, run_rank, &r[i]), 0);
    }
    for (int i = 0; i < 2 * WORLD; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2 * WORLD; i++)
        if (r[i].st != TENREC_OK)
            fail_msg("rank %d: %s", i, r[i].err.text);
}

TEST_WITH(barrier_names_the_ranks_that_did_not_come, make_place, drop_place)
{
    struct tenrec_process_group *pg, *other;

    assert_status(tenrec_process_group_new(keep, 1, 8, "short", &pg, &err), &err);
    assert_status(tenrec_process_group_new(keep, 3, 8, "short", &other, &err), &err);
    assert_int_equal(tenrec_process_group_barrier(other, 0, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_process_group_barrier(pg, SOON_MS * (int64_t)testing_slow(), &err),
                     TENREC_ETIMEDOUT);
    assert_text_has(err.text, "ranks 0, 2, 4-7 of 8");
    assert_text_has(err.text, "\"short\"");
    tenrec_process_group_drop(pg);
    tenrec_process_group_drop(other);
}

TEST_WITH(sum_adds_up_and_names_missing_members, make_place, drop_place)
{
    static const struct tenrec_member member[] = { { .size = sizeof *member, .name = "ps" },
                                                   { .size = sizeof *member, .name = "trainer" } };
    const int64_t first[] = { 5, INT64_C(1) << 60, 0 }, second[] = { -2, INT64_C(1) << 60, -7 };
    struct tenrec_process_group *a, *b;
    int64_t sum[3] = { 0 };

    assert_status(process_group_new_once(keep, 0, 2, "sum", member, &a, &err), &err);
    assert_status(process_group_new_once(keep, 1, 2, "sum", member, &b, &err), &err);
    assert_int_equal(process_group_sum(a, first, 3, NULL,
                                       clock_deadline_ms(SOON_MS * testing_slow()), sum, &err),
                     TENREC_ETIMEDOUT);
    assert_text_has(err.text, "rank 1 (\"trainer\") of 2");
    /* A late member finds the other's value. */
    assert_status(process_group_sum(b, second, 3, NULL, clock_deadline_ms(TEST_MS), sum, &err),
                  &err);
    assert_int_equal(sum[0], 3);
    assert_int_equal(sum[1], INT64_C(1) << 61);
    assert_int_equal(sum[2], -7);
    tenrec_process_group_drop(a);
    tenrec_process_group_drop(b);
}

static bool rank_2_is_lost(void *arg, int32_t rank, uint64_t waited_ms)
{
    (void)arg, (void)waited_ms;
    return rank == 2;
}

static tenrec_status sum_without_rank_2(struct rank *r, struct tenrec_process_group *pg)
{
    const int64_t mine = 1;
    int64_t sum;
    tenrec_error why;

    process_group_set_lost(pg, &(struct group_lost){ r->rank == 1 ? rank_2_is_lost : NULL, NULL });
    if (r->rank == 0 || r->rank == 2)
        return TENREC_OK; /* the leader is late, another is dead */
    if (process_group_sum(pg, &mine, 1, NULL, clock_deadline_ms(TEST_MS), &sum, &why) !=
        TENREC_EPEER_LOST)
        return tenrec_fail(&r->err, TENREC_EPROTOCOL, "the sum did not fail for the lost rank");
    return strstr(why.text, "rank 2 of 4 was lost before reaching the counts of calls")
               ? TENREC_OK
               : tenrec_fail(&r->err, TENREC_EPROTOCOL, "another reason: %.200s", why.text);
}

/* The second rank stands in for the leader, and tells the fourth. */
TEST_WITH(sum_fails_for_all_when_a_stand_in_sees_that_a_rank_is_lost, make_place, drop_place)
{
    run_all(sum_without_rank_2);
}

TEST_WITH(sum_refuses_another_number_of_counts, make_place, drop_place)
{
    const int64_t mine[] = { 1, 2 };
    struct tenrec_process_group *a, *b;
    int64_t sum[2];

    assert_status(process_group_new_once(keep, 0, 2, "sums", NULL, &a, &err), &err);
    assert_status(process_group_new_once(keep, 1, 2, "sums", NULL, &b, &err), &err);
    assert_int_equal(
        process_group_sum(a, mine, 1, NULL, clock_deadline_ms(SOON_MS * testing_slow()), sum, &err),
        TENREC_ETIMEDOUT);
    assert_int_equal(process_group_sum(b, mine, 2, NULL, clock_deadline_ms(TEST_MS), sum, &err),
                     TENREC_EPROTOCOL);
    assert_text_has(err.text, "rank 0 gave \"1\" as its counts of calls");
    tenrec_process_group_drop(a);
    tenrec_process_group_drop(b);
}

TEST_WITH(group_refuses_invalid_ranks_and_sizes, make_place, drop_place)
{
    struct tenrec_process_group *pg = NULL;

    assert_int_equal(tenrec_process_group_new(keep, 0, 0, "g", &pg, &err), TENREC_EINVAL);
    assert_text_has(err.text, "world size 0");
    assert_int_equal(tenrec_process_group_new(keep, 2, 2, "g", &pg, &err), TENREC_EINVAL);
    assert_text_has(err.text, "rank 2");
    assert_int_equal(tenrec_process_group_new(keep, -1, 2, "g", &pg, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_process_group_new(keep, 0, 2, "no/slash", &pg, &err), TENREC_EINVAL);
    assert_text_has(err.text, "no/slash");
    assert_int_equal(tenrec_process_group_new(keep, 0, 2, "", &pg, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_process_group_new(NULL, 0, 2, "g", &pg, &err), TENREC_EINVAL);
    assert_null(pg);
    assert_status(tenrec_process_group_new(keep, 0, 1, "g", &pg, &err), &err);
    assert_int_equal(tenrec_process_group_barrier(pg, -1, &err), TENREC_EINVAL);
    assert_status(tenrec_process_group_barrier(pg, 0, &err), &err);
    tenrec_process_group_drop(pg);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        kind = argv[1];
    return testing_run(NULL, NULL);
}
