/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a static group: workers are threads that meet over an
 * in-process store. */
#include "../support/test_store.h"

#include "../support/hooked_store.h"
#include "core/base/clock.h"
#include "group/meeting/meeting.h"
#include "group/store/host_copy.h"

static struct tenrec_store *store;
static tenrec_error err;

static void make_store(void)
{
    static int count;
    char url[32];

    snprintf(url, sizeof url, "memory://members%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &store, &err), &err);
}

static void drop_store(void)
{
    tenrec_store_close(store);
}

struct joiner {
    int32_t rank, world;
    const char *name;
    int64_t ms;
    const char *backend;
    const char *extra;
    struct generation generation;
    struct members *members;
    tenrec_status st;
    tenrec_error err;
    pthread_t thread;
};

static void *join(void *arg)
{
    struct joiner *j = arg;
    uint64_t deadline_ns = clock_deadline_ms((uint64_t)j->ms);
    const struct store_value extra = { (void *)(uintptr_t)j->extra,
                                       j->extra ? strlen(j->extra) : 0 };
    char address[64];

    snprintf(address, sizeof address, "uv://127.0.0.1:%d", 1000 + j->rank);
    j->st =
        generation_open(store, "g", "", j->rank, j->world, deadline_ns, &j->generation, &j->err);
    j->generation.backend = j->backend;
    j->generation.copies = getenv(HOST_COPY_VARIABLE) != NULL;
    if (j->st == TENREC_OK)
        j->st = members_join(&j->generation, j->name, address, &extra, deadline_ns, &j->members,
                             &j->err);
    return NULL;
}

static void start(struct joiner *j)
{
    assert_int_equal(pthread_create(&j->thread, NULL, join, j), 0);
}

static void finish(struct joiner *j)
{
    pthread_join(j->thread, NULL);
}

static void leave(struct joiner *j)
{
    generation_close(&j->generation, clock_deadline_ms(TEST_MS));
    members_drop(j->members);
    j->members = NULL;
}

static void join_all(struct joiner *j, int n)
{
    for (int i = 0; i < n; i++)
        start(&j[i]);
    for (int i = 0; i < n; i++)
        finish(&j[i]);
}

static void leave_all(struct joiner *j, int n)
{
    for (int i = 0; i < n; i++)
        leave(&j[i]);
}

TEST_WITH(members_know_names_and_addresses_of_all_members, make_store, drop_store)
{
    struct joiner j[] = { { 0, 3, "ps", TEST_MS },
                          { 1, 3, "trainer:0", TEST_MS },
                          { 2, 3, "trainer-1", TEST_MS } };

    join_all(j, 3);
    for (int i = 0; i < 3; i++) {
        assert_status(j[i].st, &j[i].err);
        assert_int_equal(j[i].members->n, 3);
        assert_string_equal(j[i].members->member[1].name, "trainer:0");
        assert_string_equal(j[i].members->member[2].address, "uv://127.0.0.1:1002");
        assert_int_equal(j[i].members->member[2].id, 2);
        assert_null(j[i].members->list);
    }
    leave_all(j, 3);
}

TEST_WITH(members_keep_all_records_if_one_has_more_than_the_agents_need, make_store, drop_store)
{
    struct joiner j[] = { { 0, 3, "a", TEST_MS },
                          { 1, 3, "b", TEST_MS, .extra = "two devices" },
                          { 2, 3, "c", TEST_MS } };

    join_all(j, 3);
    for (int i = 0; i < 3; i++) {
        const struct member *list = j[i].members->list;

        assert_status(j[i].st, &j[i].err);
        assert_non_null(list);
        assert_string_equal(list[1].name, "b");
        assert_int_equal(list[1].extra_len, strlen("two devices"));
        assert_memory_equal(list[1].extra, "two devices", strlen("two devices"));
        assert_int_equal(list[0].extra_len + list[2].extra_len, 0);
        assert_string_equal(list[2].host, list[0].host);
        assert_string_equal(j[i].members->member[2].name, "c");
    }
    leave_all(j, 3);
}

static void make_store_and_copy(void)
{
    char text[16];
    int fd;

    make_store();
    assert_status(host_copy_new(&fd, &err), &err);
    snprintf(text, sizeof text, "%d", fd);
    setenv(HOST_COPY_VARIABLE, text, 1);
}

static void drop_store_and_copy(void)
{
    close(atoi(getenv(HOST_COPY_VARIABLE)));
    unsetenv(HOST_COPY_VARIABLE);
    drop_store();
}

/* The workers of a host share what one has read, but not that of a former life, in which ranks 1
 * and 2 had the other's name. */
TEST_WITH(members_of_one_host_know_the_members_of_their_own_life, make_store_and_copy,
          drop_store_and_copy)
{
    static const char *const names[] = { "b", "c", "b" };

    for (int life = 0; life < 2; life++) {
        struct joiner j[] = { { 0, 3, "a", TEST_MS },
                              { 1, 3, names[life], TEST_MS },
                              { 2, 3, names[life + 1], TEST_MS } };

        join_all(j, 3);
        for (int i = 0; i < 3; i++) {
            assert_status(j[i].st, &j[i].err);
            assert_string_equal(j[i].members->member[1].name, names[life]);
            assert_int_equal(j[i].members->member[0].token, j[0].generation.token);
        }
        leave_all(j, 3);
    }
}

/* The start of a worker was counted, but its process died, or had no time left for the answer. */
TEST_WITH(members_meet_when_a_start_was_counted_in_vain, make_store, drop_store)
{
    struct joiner j[] = { { 0, 2, "ps", TEST_MS }, { 1, 2, "trainer", TEST_MS } };

    for (int life = 1; life <= 2; life++) {
        for (int in_vain = 0; in_vain < 2; in_vain++)
            assert_status(tenrec_store_add(store, "tenrec/g/rank/1", 1, TEST_MS, NULL, &err), &err);
        join_all(j, 2);
        for (int i = 0; i < 2; i++) {
            assert_status(j[i].st, &j[i].err);
            assert_int_equal(j[i].generation.incarnation, life);
        }
        leave_all(j, 2);
    }
}

/* Two processes have one rank, and the first publishes late: one of them is refused. */
TEST_WITH(members_refuse_a_rank_whose_record_another_process_wrote, make_store, drop_store)
{
    struct joiner first = { 0, 2, "first", TEST_MS }, second = { 0, 2, "second", TEST_MS };
    struct joiner other = { 1, 2, "other", TEST_MS };
    const uint64_t deadline_ns = clock_deadline_ms(TEST_MS);

    bool there = false;

    assert_status(generation_open(store, "g", "", 0, 2, deadline_ns, &first.generation, &err),
                  &err);
    start(&second);
    assert_becomes(tenrec_store_check(store, (const char *[]){ "tenrec/g/1/member/0" }, 1, TEST_MS,
                                      &there, &err) == TENREC_OK &&
                   there);
    assert_int_equal(members_join(&first.generation, "first", "uv://127.0.0.1:1", NULL, deadline_ns,
                                  &first.members, &err),
                     TENREC_EGROUP);
    assert_text_has(err.text, "rank 0 of group \"g\" was taken by worker \"second\"");
    start(&other); /* the group itself takes no harm */
    finish(&second);
    finish(&other);
    assert_status(second.st, &second.err);
    assert_status(other.st, &other.err);
    leave(&first);
    leave(&second);
    leave(&other);
}

static int asked; /* for the list: by the first round, by the second */

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

static tenrec_status go_in_the_second_round(enum hooked_op op, const char *key)
{
    if (op == HOOKED_GET && ends_in(key, "/members"))
        asked++;
    return asked >= 2 ? TENREC_EPEER_LOST : TENREC_OK;
}

/* Rank 0, which serves the store, gives up before rank 1 does. */
TEST_WITH(members_name_missing_ranks_when_the_store_goes_first, make_store, drop_store)
{
    struct joiner first = { 0, 3, "a", 100 }, second = { 1, 3, "b", TEST_MS };
    static struct hooks hooks = { .before = go_in_the_second_round }; /* outlives the store */
    struct tenrec_store *plain = store;

    asked = 0;
    start(&first);
    finish(&first);
    assert_int_equal(first.st, TENREC_ETIMEDOUT);
    store = hooked_store(&hooks, plain);
    start(&second);
    finish(&second);
    assert_int_equal(second.st, TENREC_EPEER_LOST);
    assert_text_has(second.err.text, "rank 2 of 3 did not join group \"g\"");
    leave(&second);
    leave(&first);
}

TEST_WITH(members_name_ranks_that_did_not_come, make_store, drop_store)
{
    struct joiner j[] = { { 0, 4, "a", 2000 }, { 2, 4, "c", 2000 } };

    join_all(j, 2);
    assert_int_equal(j[0].st, TENREC_ETIMEDOUT);
    assert_text_has(j[0].err.text, "ranks 1, 3 of 4 did not join group \"g\" within");
    assert_int_equal(j[1].st, TENREC_ETIMEDOUT);
    leave_all(j, 2);
}

/* A member that gave up and retries meets later members. */
TEST_WITH(members_meet_at_the_second_try_after_a_timeout, make_store, drop_store)
{
    struct joiner first = { 0, 2, "a", 20 }, second = { 0, 2, "a", TEST_MS };
    struct joiner late = { 1, 2, "b", TEST_MS };

    join_all(&first, 1);
    assert_int_equal(first.st, TENREC_ETIMEDOUT);
    leave(&first);
    start(&late);
    start(&second);
    finish(&late);
    finish(&second);
    assert_status(late.st, &late.err);
    assert_status(second.st, &second.err);
    leave(&late);
    leave(&second);
}

/* Rank 0 has published itself, and died before it wrote the list. */
TEST_WITH(members_meet_when_rank_0_dies_before_the_list, make_store, drop_store)
{
    struct member dead = {
        .name = "a", .rank = 0, .world = 3, .incarnation = 1, .address = (char[]){ "x" }
    };
    struct joiner j[] = { { 1, 3, "b", TEST_MS }, { 2, 3, "c", TEST_MS } };
    struct member_place here;
    struct store_value record;

    member_describe_process(&dead, &here);
    member_pack(&dead, &record);
    assert_status(
        tenrec_store_set(store, "tenrec/g/1/member/0", record.data, record.len, TEST_MS, &err),
        &err);
    free(record.data);
    join_all(j, 2);
    for (int i = 0; i < 2; i++) {
        assert_status(j[i].st, &j[i].err);
        assert_string_equal(j[i].members->member[0].name, "a");
    }
    leave_all(j, 2);
}

TEST_WITH(members_name_ranks_that_share_a_name, make_store, drop_store)
{
    struct joiner j[] = { { 0, 3, "same", TEST_MS },
                          { 1, 3, "other", TEST_MS },
                          { 2, 3, "same", TEST_MS } };

    join_all(j, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(j[i].st, TENREC_EGROUP);
        assert_text_has(j[i].err.text, "\"same\" is used by ranks 0 and 2");
    }
    leave_all(j, 3);
}

TEST_WITH(members_refuse_another_world_size, make_store, drop_store)
{
    struct joiner a = { 0, 2, "a", TEST_MS }, b = { 1, 3, "b", TEST_MS };

    start(&a);
    join_all(&b, 1); /* both hear of it long before their limits */
    finish(&a);
    assert_int_equal(b.st, TENREC_EGROUP);
    assert_int_equal(a.st, TENREC_EGROUP);
    assert_text_has(a.err.text, "worker \"b\" joined group \"g\" as rank 1 with world size 3, "
                                "expected rank 1 with world size 2");
    assert_string_equal(b.err.text, a.err.text);
    leave(&a);
    leave(&b);
}

TEST_WITH(members_refuse_another_backend_on_all_sides, make_store, drop_store)
{
    struct joiner j[] = { { 0, 3, "a", TEST_MS, "tensorpipe" },
                          { 1, 3, "b", TEST_MS, "ucx" },
                          { 2, 3, "c", TEST_MS, "tensorpipe" } };

    join_all(j, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(j[i].st, TENREC_EGROUP);
        assert_text_has(j[i].err.text, "\"tensorpipe\"");
        assert_text_has(j[i].err.text, "\"ucx\"");
    }
    assert_text_has(j[0].err.text, "worker \"b\" (rank 1) of group \"g\" uses the backend \"ucx\"");
    leave_all(j, 3);
}

TEST_WITH(members_refuse_a_mix_with_dynamic_members, make_store, drop_store)
{
    struct joiner j[] = { { 0, 2, "a", TEST_MS }, { 1, 2, "b", TEST_MS } };
    struct membership_view v = { .version = 0 };
    struct membership_list r;

    assert_status(membership_list_open(store, "g", "", 5000, &r, &err), &err);
    assert_status(membership_list_reserve(&r, -1, "d", clock_deadline_ms(TEST_MS), &err), &err);
    assert_status(membership_list_join(&r, "uv://x", NULL, clock_deadline_ms(TEST_MS), &v, &err),
                  &err);
    join_all(j, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(j[i].st, TENREC_EGROUP);
        assert_text_has(j[i].err.text, "mixes static and dynamic");
    }
    leave_all(j, 2);
    membership_view_finish(&v);
    membership_list_close(&r);
}

TEST_WITH(members_refuse_a_rank_that_is_taken, make_store, drop_store)
{
    struct joiner a = { 0, 2, "first", TEST_MS }, b = { 1, 2, "b", TEST_MS };
    struct joiner twin = { 0, 2, "second", TEST_MS };

    start(&a);
    assert_status(
        tenrec_store_wait(store, (const char *[]){ "tenrec/g/1/member/0" }, 1, TEST_MS, &err),
        &err);
    join_all(&twin, 1);
    assert_int_equal(twin.st, TENREC_EGROUP);
    assert_text_has(twin.err.text, "rank 0 of group \"g\" is taken by worker \"first\"");
    start(&b); /* the group itself takes no harm */
    finish(&a);
    finish(&b);
    assert_status(a.st, &a.err);
    assert_status(b.st, &b.err);
    leave(&a);
    leave(&b);
}

/* A dead process held the rank: no process here has its number. */
TEST_WITH(members_hint_at_a_former_worker_that_died, make_store, drop_store)
{
    struct member dead = { .name = "ghost", .rank = 0, .world = 2, .incarnation = 1 };
    struct joiner j = { 0, 2, "a", 50 };
    struct member_place here;
    struct store_value record;

    member_describe_process(&dead, &here);
    dead.start++;
    member_pack(&dead, &record);
    assert_status(tenrec_store_add(store, "tenrec/g/rank/0", 1, TEST_MS, NULL, &err), &err);
    assert_status(
        tenrec_store_set(store, "tenrec/g/1/member/0", record.data, record.len, TEST_MS, &err),
        &err);
    free(record.data);
    join_all(&j, 1);
    assert_int_equal(j.st, TENREC_ETIMEDOUT);
    assert_text_has(j.err.text, "rank 1 of 2 did not join");
    assert_text_has(j.err.text, "\"ghost\"");
    leave(&j);
}

TEST_WITH(members_can_start_again_and_again, make_store, drop_store)
{
    for (int round = 0; round < 4; round++) {
        struct joiner j[] = { { 0, 2, "a", TEST_MS }, { 1, 2, "b", TEST_MS } };
        int64_t keys;
        join_all(j, 2);
        assert_status(j[0].st, &j[0].err);
        assert_status(j[1].st, &j[1].err);
        assert_int_equal(j[0].generation.incarnation, round + 1);
        leave_all(j, 2);
        assert_status(tenrec_store_num_keys(store, TEST_MS, &keys, &err), &err);
        assert_true(keys <= 6 + 2 * 3); /* groups, kind, counts, two lives: it does not grow */
    }
}

TEST_WITH(members_refuse_bad_names_and_ranks, make_store, drop_store)
{
    static const char *const bad[] = { "", "white space", "a/b", "\xc3\xa4", "x\n" };
    char longer[TENREC_NAME_MAX + 2];

    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
        struct joiner j = { 0, 1, i < sizeof bad / sizeof bad[0] ? bad[i] : longer, TEST_MS };
        join_all(&j, 1);
        assert_int_equal(j.st, TENREC_EINVAL);
        assert_text_has(j.err.text, "1 to 127 of");
        leave(&j);
    }
    struct joiner outside = { 2, 2, "a", TEST_MS };
    join_all(&outside, 1);
    assert_int_equal(outside.st, TENREC_EINVAL);
    assert_text_has(outside.err.text, "rank 2 is not within 0..1");
}

TEST_WITH(record_is_refused_when_cut_or_foreign, make_store, drop_store)
{
    struct member me = { .name = "w", .rank = 1, .world = 2, .address = (char[]){ "uv://h:1" } };
    struct member_place here;
    struct store_value record, part;
    struct member got;

    member_describe_process(&me, &here);
    member_pack(&me, &record);
    for (size_t n = 0; n < record.len; n++) {
        part = (struct store_value){ record.data, n };
        assert_int_equal(member_unpack(&part, &got, &err), TENREC_EPROTOCOL);
        assert_null(got.address);
    }
    assert_status(member_unpack(&record, &got, &err), &err);
    assert_string_equal(got.address, "uv://h:1");
    assert_int_equal(got.pid, getpid());
    member_free(&got);
    free(record.data);
}
