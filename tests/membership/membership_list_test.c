/* SPDX-License-Identifier: Apache-2.0 */
/* membership_list_test.c - the members of a dynamic group in its store, when others change that
 * at the worst moment, an answer is lost, or a record is malformed. */
#include "../support/test_store.h"

#include "../support/hooked_store.h"
#include "core/base/clock.h"
#include "group/membership/group_directory.h"

#define LEASE_MS 60000 /* longer than any test may wait */

static struct tenrec_store *store;
static struct hooks hooks;
static tenrec_error err;

static void begin(void)
{
    struct tenrec_store *inner;
    static int count;
    char url[32];

    snprintf(url, sizeof url, "memory://list%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &inner, &err), &err);
    hooks = (struct hooks){ .inner = NULL };
    store = hooked_store(&hooks, inner);
}

static void end(void)
{
    tenrec_store_close(store);
}

static uint64_t soon(void)
{
    return clock_deadline_ms(TEST_MS);
}

static struct membership_list open_one(void)
{
    struct membership_list r;

    assert_status(membership_list_open(store, "g", "", LEASE_MS, &r, &err), &err);
    return r;
}

static void reserve(struct membership_list *r, tenrec_peer wished)
{
    assert_status(membership_list_reserve(r, wished, "worker{rank}", soon(), &err), &err);
}

static struct membership_view join(struct membership_list *r)
{
    struct membership_view v;

    assert_status(membership_list_join(r, "here", NULL, soon(), &v, &err), &err);
    return v;
}

static struct membership_list member(tenrec_peer wished)
{
    struct membership_list r = open_one();
    struct membership_view v;

    reserve(&r, wished);
    v = join(&r);
    membership_view_finish(&v);
    return r;
}

static void leave(struct membership_list *r)
{
    struct membership_view v;

    assert_status(membership_list_leave(r, soon(), &v, &err), &err);
    membership_view_finish(&v);
    membership_list_close(r);
}

static bool ends_in(const char *key, const char *with)
{
    size_t n = strlen(key), len = strlen(with);

    return n >= len && strcmp(key + n - len, with) == 0;
}

/* ---- the worst moment ------------------------------------------------------------ */

static tenrec_status remove_record(enum hooked_op op, const char *key)
{
    if (op == HOOKED_GET && ends_in(key, "/member/1"))
        tenrec_store_delete(hooks.inner, key, TEST_MS, NULL, NULL);
    return TENREC_OK;
}

/* Between the question whether a record exists and its reading. */
TEST_WITH(membership_list_does_not_wait_for_the_record_of_a_member_that_just_left, begin, end)
{
    struct membership_list a = member(0), b = member(1);
    const uint64_t since = clock_now_ns();
    struct member record[2];
    struct membership_view v;

    assert_status(membership_list_read(&b, soon(), &v, &err), &err);
    hooks.before = remove_record;
    assert_status(membership_list_records(&b, v.entry, v.n, soon(), record, &err), &err);
    hooks.before = NULL;
    assert_true(clock_now_ns() - since < TEST_MS * UINT64_C(1000000) / 2);
    assert_null(record[0].address);
    assert_string_equal(record[1].name, "worker1");
    member_free(&record[1]);
    membership_view_finish(&v);
    leave(&a);
    leave(&b);
}

static struct membership_list joiner;

static tenrec_status join_another(enum hooked_op op, const char *key)
{
    struct membership_view v;

    if (op != HOOKED_CHECK || joiner.joined || !ends_in(key, "names/_ALL_WORKER_INFOS"))
        return TENREC_OK;
    assert_status(membership_list_open(hooks.inner, "g", "", LEASE_MS, &joiner, &err), &err);
    reserve(&joiner, 0);
    v = join(&joiner);
    membership_view_finish(&v);
    return TENREC_OK;
}

/* Between the reading of the members and that of torch's list, which has the new member, too. */
TEST_WITH(membership_list_takes_no_member_that_just_joined_for_a_worker_of_torch, begin, end)
{
    struct membership_list b = open_one();
    struct membership_view v;

    hooks.before = join_another;
    reserve(&b, 1);
    hooks.before = NULL;
    assert_true(joiner.joined);
    v = join(&b);
    assert_int_equal(v.n, 2);
    membership_view_finish(&v);
    leave(&b);
    leave(&joiner);
}

/* A joiner holds the lock: until it has joined no reader finds it in the list. */
TEST_WITH(membership_list_makes_no_group_static_that_a_member_joins, begin, end)
{
    struct membership_list a = open_one();
    struct membership_view v;

    reserve(&a, 0);
    assert_int_equal(group_kind_claim_static(store, "g", "", clock_deadline_ms(50), &err),
                     TENREC_ETIMEDOUT);
    v = join(&a);
    membership_view_finish(&v);
    assert_int_equal(group_kind_claim_static(store, "g", "", soon(), &err), TENREC_EGROUP);
    assert_text_has(err.text, "mixes static and dynamic");
    {
        struct membership_list b = member(1); /* and it released the lock */
        leave(&b);
    }
    leave(&a);
    a = open_one();
    assert_status(group_kind_claim_static(store, "g", "", soon(), &err), &err);
    assert_int_equal(membership_list_reserve(&a, 0, "a", soon(), &err), TENREC_EGROUP);
    membership_list_close(&a);
}

static tenrec_status remove_one(struct membership_list *by, const struct membership_list *dead,
                                struct membership_view *ret)
{
    const struct membership_life one = { dead->id, dead->incarnation };

    return membership_list_remove(by, &one, 1, true, soon(), ret, &err);
}

TEST_WITH(membership_list_removes_many_in_one_view, begin, end)
{
    struct membership_list a = member(0), b = member(1), c = member(2), d = member(3);
    const struct membership_life dead[] = { { 1, b.incarnation }, { 9, 77 }, { 2, c.incarnation } };
    struct membership_view before, v;

    assert_status(membership_list_read(&a, soon(), &before, &err), &err);
    assert_status(membership_list_remove(&a, dead, 3, true, soon(), &v, &err), &err);
    assert_int_equal(v.version, before.version + 1);
    assert_int_equal(v.n, 2);
    assert_non_null(membership_view_find(&v, 3, d.incarnation));
    for (int i = 0; i < 3; i += 2) {
        const struct membership_view_gone *g = membership_view_find_gone(&v, dead[i].incarnation);

        assert_non_null(g);
        assert_true(g->died);
        assert_int_equal(g->by, 0);
    }
    membership_view_finish(&before);
    membership_view_finish(&v);
    leave(&b);
    leave(&c);
    leave(&d);
    leave(&a);
}

/* Each takes the other for dead: the first one stays, and the other is out. */
TEST_WITH(membership_list_keeps_one_of_two_members_that_remove_each_other, begin, end)
{
    struct membership_list a = member(0), b = member(1);
    struct membership_view v;

    assert_status(remove_one(&a, &b, &v), &err);
    membership_view_finish(&v);
    assert_status(remove_one(&b, &a, &v), &err);
    assert_int_equal(v.n, 1);
    assert_int_equal(v.entry[0].id, 0);
    assert_non_null(membership_view_find_gone(&v, b.incarnation));
    membership_view_finish(&v);
    leave(&b);
    leave(&a);
}

/* ---- lost answers ---------------------------------------------------------------- */

static int to_lose;

static tenrec_status lose_lock(enum hooked_op op, const char *key)
{
    if (op != HOOKED_COMPARE_SET || !ends_in(key, "/lock"))
        return TENREC_OK;
    return to_lose > 0 && --to_lose == 0 ? TENREC_EPEER_LOST : TENREC_OK;
}

/* The first compare_set acquires the lock, the second releases it. `done`: it was,
 * and only the answer is lost. */
static void lose_nth(int n, bool done)
{
    struct membership_list a = member(0), b = member(1);
    const uint64_t since = clock_now_ns();
    struct membership_view v;
    tenrec_status st;

    hooks.before = done ? NULL : lose_lock;
    hooks.after = done ? lose_lock : NULL;
    to_lose = n;
    st = remove_one(&a, &b, &v);
    assert_int_equal(st, n == 1 ? TENREC_EPEER_LOST : TENREC_OK);
    if (st == TENREC_OK)
        membership_view_finish(&v);
    assert_int_equal(to_lose, 0);
    hooks.before = hooks.after = NULL;
    assert_status(remove_one(&a, &b, &v), &err);
    assert_int_equal(v.n, 1);
    membership_view_finish(&v);
    assert_true(clock_now_ns() - since < TEST_MS * UINT64_C(1000000) / 2);
    leave(&b);
    leave(&a);
}

TEST_WITH(membership_list_finds_its_lock_again_when_the_answer_was_lost, begin, end)
{
    lose_nth(1, true);
    lose_nth(1, false);
}

TEST_WITH(membership_list_finds_its_lock_again_when_the_release_was_not_answered, begin, end)
{
    lose_nth(2, true);
    lose_nth(2, false);
}

/* ---- no sense -------------------------------------------------------------------- */

static void put(struct membership_list *r, const char *key, const void *data, size_t len)
{
    assert_status(tenrec_store_set(r->store, key, data, len, TEST_MS, &err), &err);
}

TEST_WITH(membership_list_names_a_malformed_record_and_releases_its_lock, begin, end)
{
    struct membership_list a = member(0), b = open_one();
    struct membership_view v, last = { .version = INT64_MAX };
    struct store_value bytes;
    struct member record;

    put(&a, "member/1", "nonsense", 8);
    assert_int_equal(membership_list_reserve(&b, 0, "b", soon(), &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "record of a worker");
    assert_status(membership_list_read(&a, soon(), &v, &err), &err);
    assert_int_equal(membership_list_records(&a, v.entry, 1, soon(), &record, &err),
                     TENREC_EPROTOCOL);
    membership_view_finish(&v);
    put(&a, "view", "nonsense", 8);
    assert_int_equal(membership_list_reserve(&b, 1, "b", soon(), &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "list of a group's members");
    /* No view comes after that one. */
    membership_view_pack(&last, &bytes);
    put(&a, "view", bytes.data, bytes.len);
    free(bytes.data);
    assert_int_equal(membership_list_reserve(&b, 1, "b", soon(), &err), TENREC_EPROTOCOL);
    /* The failed member released the lock, so the next does not wait. */
    put(&a, "view", "", 0);
    assert_int_equal(membership_list_reserve(&b, 1, "b", soon(), &err), TENREC_EPROTOCOL);
    membership_list_close(&b);
    membership_list_close(&a);
}

TEST_WITH(membership_list_refuses_a_worker_with_another_backend_and_writes_nothing, begin, end)
{
    struct membership_list a = open_one(), b = open_one();
    struct membership_view v;
    int64_t before, after;

    a.backend = "tensorpipe";
    b.backend = "ucx";
    reserve(&a, 0);
    v = join(&a);
    membership_view_finish(&v);
    assert_status(tenrec_store_num_keys(store, TEST_MS, &before, &err), &err);
    reserve(&b, 1);
    assert_int_equal(membership_list_join(&b, "here", NULL, soon(), &v, &err), TENREC_EGROUP);
    assert_text_has(err.text, "worker \"worker0\" (id 0) of group \"g\" uses the backend "
                              "\"tensorpipe\", id 1 uses \"ucx\"");
    assert_status(tenrec_store_num_keys(store, TEST_MS, &after, &err), &err);
    assert_int_equal(after, before);
    leave(&b);
    b = open_one();
    b.backend = "tensorpipe";
    reserve(&b, 1);
    v = join(&b);
    assert_int_equal(v.n, 2);
    membership_view_finish(&v);
    leave(&b);
    leave(&a);
}

static void die_as(struct membership_list *r, const char *backend)
{
    struct store_value record;
    struct member m = { .rank = r->id, .incarnation = r->incarnation, .pid = 0 };
    struct member_place here;

    m.name = r->name;
    m.backend = backend;
    member_describe_process(&m, &here);
    m.start--; /* of another process with our number */
    m.address = "here";
    member_pack(&m, &record);
    put(r, "member/1", record.data, record.len);
    free(record.data);
}

TEST_WITH(membership_list_accepts_a_worker_with_another_backend_than_that_of_the_dead, begin, end)
{
    struct membership_list a = member(0), b = open_one();
    struct membership_view v;

    die_as(&a, "tensorpipe");
    b.backend = "ucx";
    reserve(&b, 1);
    v = join(&b);
    membership_view_finish(&v);
    leave(&b);
    leave(&a);
}

TEST_WITH(membership_list_refuses_records_that_other_members_could_not_read, begin, end)
{
    struct membership_list a = open_one();
    struct store_value extra = { calloc(1, MEMBER_MAX_EXTRA + 1), MEMBER_MAX_EXTRA + 1 };
    struct membership_view v;

    reserve(&a, 0);
    assert_int_equal(membership_list_join(&a, "here", &extra, soon(), &v, &err), TENREC_ETOOBIG);
    leave(&a);
    a = member(0); /* the lock is free, too */
    leave(&a);
    free(extra.data);
}
