/* SPDX-License-Identifier: Apache-2.0 */
/* requests_test.c - changes of a group's list that its lock's holder does for those that wait; the
 * holder dies at each of its steps, and the store holds malformed values. */
#include "../support/test_store.h"

#include "../support/hooked_store.h"
#include "core/base/clock.h"
#include "group/membership/membership.h"

#include <stdatomic.h>
#include <string.h>
#include <tenrec/log.h>

enum { WAITERS = 2, SHORT_MS = 100, LONG_MS = 60000 };

static struct tenrec_store *store; /* of the worker that holds the lock, with hooks */
static struct hooks hooks;
static tenrec_error err;

static void begin(void)
{
    struct tenrec_store *inner;
    static int count;
    char url[32];

    snprintf(url, sizeof url, "memory://requests%d", count++);
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

/* A worker with a thread of its own. */
struct waiter {
    pthread_t thread;
    struct membership_list list;
    uint64_t lease_ms;
    tenrec_status st;
    tenrec_error why;
    struct membership_view v;
};

static void *wait_and_join(void *arg)
{
    struct waiter *w = arg;

    w->st = membership_list_open(hooks.inner, "g", "", w->lease_ms, &w->list, &w->why);
    if (w->st == TENREC_OK)
        w->st = membership_list_reserve(&w->list, -1, "w{rank}", soon(), &w->why);
    if (w->st == TENREC_OK)
        w->st = membership_list_join(&w->list, "here", NULL, soon(), &w->v, &w->why);
    return NULL;
}

static void *wait_and_leave(void *arg)
{
    struct waiter *w = arg;

    membership_view_finish(&w->v);
    w->st = membership_list_leave(&w->list, soon(), &w->v, &w->why);
    return NULL;
}

static void start(struct waiter *w, void *(*what)(void *))
{
    assert_int_equal(pthread_create(&w->thread, NULL, what, w), 0);
}

static void must_end(struct waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_status(w->st, &w->why);
}

static void finish(struct waiter *w)
{
    membership_view_finish(&w->v);
    membership_list_close(&w->list);
}

static bool asks(int64_t ticket)
{
    char key[64];
    const char *keys[] = { key };
    bool there = false;

    snprintf(key, sizeof key, "tenrec/g/lock/%lld/wants", (long long)ticket);
    assert_status(tenrec_store_check(hooks.inner, keys, 1, TEST_MS, &there, &err), &err);
    return there;
}

static struct membership_view list_of_members(void)
{
    struct tenrec_store *part;
    struct membership_view v;

    assert_status(tenrec_store_open_prefix(hooks.inner, "tenrec/g", &part, &err), &err);
    assert_status(membership_list_list(part, soon(), &v, NULL, &err), &err);
    tenrec_store_close(part);
    return v;
}

/* ---- together -------------------------------------------------------------------- */

static struct membership_list lead(uint64_t lease_ms)
{
    struct membership_list r;

    assert_status(membership_list_open(store, "g", "", lease_ms, &r, &err), &err);
    assert_status(membership_list_reserve(&r, -1, "w{rank}", soon(), &err), &err);
    assert_true(r.lock.lease.held);
    return r;
}

TEST_WITH(requests_of_all_joiners_that_wait_make_one_view_and_their_leaves_another, begin, end)
{
    struct membership_list r = lead(LONG_MS);
    struct waiter w[WAITERS] = { { .lease_ms = LONG_MS }, { .lease_ms = LONG_MS } };
    struct membership_view v;

    for (int i = 0; i < WAITERS; i++) {
        start(&w[i], wait_and_join);
        assert_becomes(asks(2 + i));
    }
    assert_status(membership_list_join(&r, "here", NULL, soon(), &v, &err), &err);
    assert_int_equal(v.n, 1 + WAITERS);
    assert_int_equal(v.version, 1);
    membership_view_finish(&v);
    for (int i = 0; i < WAITERS; i++) {
        must_end(&w[i]);
        assert_int_equal(w[i].v.version, 1);
        assert_int_equal(w[i].list.id, 1 + i);
    }
    assert_status(group_lock_acquire(&r.lock, "test", soon(), &err), &err);
    for (int i = 0; i < WAITERS; i++) {
        const int64_t ticket = r.lock.lease.ticket + 1 + i;

        start(&w[i], wait_and_leave);
        assert_becomes(asks(ticket));
    }
    group_lock_release(&r.lock, soon());
    for (int i = 0; i < WAITERS; i++) {
        must_end(&w[i]);
        assert_int_equal(w[i].v.version, i == 0 ? 2 : 0); /* the first removes all */
        finish(&w[i]);
    }
    v = list_of_members();
    assert_int_equal(v.n, 1);
    assert_int_equal(v.version, 2);
    membership_view_finish(&v);
    assert_status(membership_list_leave(&r, soon(), &v, &err), &err);
    membership_view_finish(&v);
    membership_list_close(&r);
}

/* ---- the records of many --------------------------------------------------------- */

static atomic_int each; /* keys of single records that the holder has asked for */

static tenrec_status count_records(enum hooked_op op, const char *key)
{
    (void)op;
    if (strstr(key, "/member/"))
        atomic_fetch_add(&each, 1);
    return TENREC_OK;
}

static struct membership_view join_many(struct membership_list *r, struct waiter *w, int n)
{
    struct membership_view v;

    for (int i = 0; i < n; i++) {
        w[i] = (struct waiter){ .lease_ms = LONG_MS };
        start(&w[i], wait_and_join);
        assert_becomes(asks(2 + i));
    }
    assert_status(membership_list_join(r, "here", NULL, soon(), &v, &err), &err);
    for (int i = 0; i < n; i++)
        must_end(&w[i]);
    return v;
}

TEST_WITH(requests_of_many_joiners_leave_all_records_in_one_value, begin, end)
{
    enum { MANY = 40 };
    struct membership_list r = lead(LONG_MS);
    struct waiter w[MANY];
    struct member record[1 + MANY];
    struct membership_view v = join_many(&r, w, MANY);

    assert_int_equal(v.n, 1 + MANY);
    hooks.before = count_records;
    atomic_store(&each, 0);
    assert_status(membership_list_records(&r, v.entry, v.n, soon(), record, &err), &err);
    assert_int_equal(atomic_load(&each), 0);
    for (size_t i = 0; i < v.n; i++) {
        assert_string_equal(record[i].name, v.entry[i].name);
        assert_string_equal(record[i].address, "here");
        member_free(&record[i]);
    }
    /* A life that is not in the value, as it came later, and a life that has left. */
    v.entry[1].incarnation += 1000;
    assert_status(membership_list_records(&r, v.entry, v.n, soon(), record, &err), &err);
    assert_true(atomic_load(&each) > 0);
    assert_null(record[1].name);
    for (size_t i = 0; i < v.n; i++)
        member_free(&record[i]);
    /* A malformed value is as none. */
    assert_status(tenrec_store_set(hooks.inner, "tenrec/g/records", "malformed", 9, TEST_MS, &err),
                  &err);
    assert_status(membership_list_records(&r, v.entry + 2, v.n - 2, soon(), record, &err), &err);
    for (size_t i = 0; i < v.n - 2; i++) {
        assert_string_equal(record[i].name, v.entry[2 + i].name);
        member_free(&record[i]);
    }
    hooks.before = NULL;
    membership_view_finish(&v);
    for (int i = 0; i < MANY; i++)
        finish(&w[i]);
    membership_list_close(&r);
}

/* ---- two holders ----------------------------------------------------------------- */

static atomic_bool other_acts;

/* Another holder, which has taken the lock over, gives ids first, and dies. */
static tenrec_status give_first(enum hooked_op op, const char *key)
{
    static const char ids[] = "TRI1\1\0\0\0\0\0\0\0" /* one: */
                              "\2\0\0\0\0\0\0\0"     /* ticket */
                              "\11\0\0\0\0\0\0\0"    /* id */
                              "\144\0\0\0\0\0\0";    /* life; the text ends with a NUL */

    if (op == HOOKED_COMPARE_SET && strstr(key, "lock/ids") && atomic_exchange(&other_acts, false))
        assert_status(tenrec_store_set(hooks.inner, key, ids, sizeof ids, TEST_MS, &err), &err);
    return TENREC_OK;
}

TEST_WITH(requests_get_one_id_from_two_holders, begin, end)
{
    struct membership_list r = lead(LONG_MS);
    struct waiter w = { .lease_ms = LONG_MS };
    struct membership_view v;

    start(&w, wait_and_join);
    assert_becomes(asks(2));
    atomic_store(&other_acts, true);
    hooks.before = give_first;
    assert_status(membership_list_join(&r, "here", NULL, soon(), &v, &err), &err);
    assert_false(atomic_load(&other_acts));
    hooks.before = NULL;
    assert_int_equal(v.n, 1);
    membership_view_finish(&v);
    must_end(&w); /* by itself: we have given it no id */
    assert_int_equal(w.v.n, 2);
    finish(&w);
    membership_list_close(&r);
}

TEST_WITH(requests_get_the_id_that_a_dead_holder_has_given, begin, end)
{
    struct membership_list r = lead(LONG_MS);
    struct waiter w = { .lease_ms = LONG_MS };
    struct membership_view v;

    atomic_store(&other_acts, true);
    give_first(HOOKED_COMPARE_SET, "tenrec/g/lock/ids");
    start(&w, wait_and_join);
    assert_becomes(asks(2));
    assert_status(membership_list_join(&r, "here", NULL, soon(), &v, &err), &err);
    assert_non_null(membership_view_find(&v, 9, 100));
    membership_view_finish(&v);
    must_end(&w);
    finish(&w);
    membership_list_close(&r);
}

/* ---- the holder dies ------------------------------------------------------------- */

static int alive_for; /* operations; < 0: for ever */

static tenrec_status die(enum hooked_op op, const char *key)
{
    (void)op, (void)key;
    if (alive_for == 0)
        return TENREC_EPEER_LOST;
    alive_for -= alive_for > 0;
    return TENREC_OK;
}

/* Returns whether the holder has died: its thread never touches the store again. */
static bool die_after(int operations)
{
    struct membership_list r;
    struct waiter w[WAITERS + 1] = { { .lease_ms = SHORT_MS },
                                     { .lease_ms = SHORT_MS },
                                     { .lease_ms = SHORT_MS } };
    struct membership_view v = { .version = 0 };
    tenrec_status st;

    begin();
    r = lead(SHORT_MS);
    for (int i = 0; i < WAITERS; i++) {
        start(&w[i], wait_and_join);
        assert_becomes(asks(2 + i));
    }
    alive_for = operations;
    hooks.before = die;
    st = membership_list_join(&r, "here", NULL, soon(), &v, &err);
    membership_view_finish(&v);
    alive_for = 0;
    start(&w[WAITERS], wait_and_join); /* a worker that comes later */
    for (int i = 0; i <= WAITERS; i++)
        must_end(&w[i]);
    v = list_of_members();
    for (int i = 0; i <= WAITERS; i++)
        assert_non_null(membership_view_find(&v, w[i].list.id, w[i].list.incarnation));
    /* The dead holder may have entered: its heartbeats will fail. */
    assert_int_equal(v.n, 1 + WAITERS + (membership_view_find(&v, r.id, r.incarnation) ? 1 : 0));
    membership_view_finish(&v);
    for (int i = 0; i <= WAITERS; i++)
        finish(&w[i]);
    membership_list_close(&r);
    end();
    return st != TENREC_OK;
}

TEST(requests_are_served_when_the_holder_dies_at_any_step)
{
    int n = 0;

    while (die_after(n))
        n++;
    assert_true(n > 10);
}

/* It asked for an id, and its process has ended since: no worker waits for its record. */
TEST_WITH(requests_of_a_process_that_has_ended_stop_no_joiner, begin, end)
{
    struct request q = { .kind = REQUEST_JOIN, .id = -1, .name = "w{rank}" };
    struct membership_list r = lead(LONG_MS);
    struct member me = { .rank = -1 };
    struct store_value value;
    struct membership_view v;
    int64_t ticket;

    member_describe_process(&me, &q.place);
    q.pid = me.pid;
    q.start = me.start - 1; /* of another process with our number */
    request_pack(&q, &value);
    assert_status(tenrec_store_add(hooks.inner, "tenrec/g/lock/tickets", 1, TEST_MS, &ticket, &err),
                  &err);
    assert_int_equal(ticket, 2);
    assert_status(tenrec_store_set(hooks.inner, "tenrec/g/lock/2/wants", value.data, value.len,
                                   TEST_MS, &err),
                  &err);
    free(value.data);
    /* A wait for half of the lease would end at this deadline. */
    assert_status(membership_list_join(&r, "here", NULL, soon(), &v, &err), &err);
    assert_int_equal(v.n, 1);
    membership_view_finish(&v);
    membership_list_close(&r);
}

/* ---- malformed ------------------------------------------------------------------- */

static void put(const char *key, const char *text)
{
    assert_status(tenrec_store_set(hooks.inner, key, text, strlen(text), TEST_MS, &err), &err);
}

static atomic_int complaints;

static void count_complaints(void *arg, enum tenrec_log_level level, const char *part,
                             const char *text)
{
    (void)arg, (void)level, (void)part;
    if (strstr(text, "ticket 2 of group \"g\": malformed request") ||
        strstr(text, "the key lock/ids of group \"g\" is malformed") ||
        strstr(text, "the key lock/head of group \"g\" is malformed"))
        atomic_fetch_add(&complaints, 1);
}

TEST_WITH(requests_that_are_malformed_are_named_and_stop_no_joiner, begin, end)
{
    struct membership_list r;
    struct membership_view v;
    int64_t tickets;

    put("tenrec/g/lock/head", "-7");
    put("tenrec/g/lock/2/wants", "malformed");
    tenrec_log_set_callback(count_complaints, NULL);
    assert_status(membership_list_open(store, "g", "", LONG_MS, &r, &err), &err);
    /* The worker draws ticket 1; another has drawn 2 and has written something else. */
    assert_status(group_lock_acquire(&r.lock, "test", soon(), &err), &err);
    assert_status(
        tenrec_store_add(hooks.inner, "tenrec/g/lock/tickets", 1, TEST_MS, &tickets, &err), &err);
    assert_status(requests_load(&r, soon(), &err), &err);
    tenrec_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&complaints), 2);
    assert_int_equal(r.requests.n, 1);
    assert_int_equal(r.requests.list[0].state, REQUEST_REFUSED);
    group_lock_release(&r.lock, soon());
    requests_forget(&r.requests);
    assert_status(membership_list_reserve(&r, -1, "w{rank}", soon(), &err), &err);
    assert_status(membership_list_join(&r, "here", NULL, soon(), &v, &err), &err);
    membership_view_finish(&v);
    membership_list_close(&r);
}

TEST_WITH(requests_are_served_when_the_given_ids_are_malformed, begin, end)
{
    struct membership_list r = lead(LONG_MS);
    struct waiter w = { .lease_ms = LONG_MS };
    struct membership_view v;

    put("tenrec/g/lock/ids", "malformed");
    atomic_store(&complaints, 0);
    tenrec_log_set_callback(count_complaints, NULL);
    start(&w, wait_and_join);
    assert_becomes(asks(2));
    assert_status(membership_list_join(&r, "here", NULL, soon(), &v, &err), &err);
    tenrec_log_set_callback(NULL, NULL);
    assert_int_equal(atomic_load(&complaints), 1);
    assert_int_equal(v.n, 2);
    membership_view_finish(&v);
    must_end(&w);
    finish(&w);
    membership_list_close(&r);
}

TEST(requests_refuse_malformed_answers)
{
    static const char *const bad[] = { "",    "in",   "1",       "1 ",   " 1",
                                       "1 0", "-1 5", "32768 5", "1 5x", "2 5" };
    tenrec_peer id;
    int64_t incarnation;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(request_read_answer(bad[i], 1, &id, &incarnation, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "malformed answer");
    }
    assert_status(request_read_answer("1 5", 1, &id, &incarnation, &err), &err);
    assert_int_equal(id, 1);
    assert_int_equal(incarnation, 5);
}

static bool reads(const struct request *q, size_t cut)
{
    struct request got;
    struct store_value value;
    bool ok;

    request_pack(q, &value);
    value.len -= cut;
    ok = request_unpack(&value, &got, &err) == TENREC_OK;
    free(value.data);
    return ok;
}

TEST(requests_are_read_as_written_and_nothing_else)
{
    const struct request join = { .kind = REQUEST_JOIN, .id = -1, .name = "w{rank}" };
    const struct request remove = { .kind = REQUEST_REMOVE, .id = 3, .incarnation = 9, .by = 4 };
    struct request bad;

    assert_true(reads(&join, 0));
    assert_true(reads(&remove, 0));
    assert_false(reads(&join, 1));
    bad = join;
    bad.id = 32768;
    assert_false(reads(&bad, 0));
    bad = join;
    *bad.name = '\0';
    assert_false(reads(&bad, 0));
    bad = remove;
    bad.id = -1;
    assert_false(reads(&bad, 0));
    bad = remove;
    bad.kind = (enum request_kind)3;
    assert_false(reads(&bad, 0));
}

int main(void)
{
    return testing_run(NULL, NULL);
}
