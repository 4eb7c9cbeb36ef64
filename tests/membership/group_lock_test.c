/* SPDX-License-Identifier: Apache-2.0 */
/* group_lock_test.c - the lock of a group: Tenrec workers and those of torch keep each
 * other out, with a clock that the test moves. */
#include "../support/test_store.h"

#include "../support/hooked_store.h"
#include "core/base/clock.h"
#include "fake_clock.h"
#include "group/membership/lease.h"
#include "group/membership/torch_keys.h"

#define LEASE_MS 1000
#define THEIRS "Token_for_their-1_join"

static struct tenrec_store *store;
static struct hooks hooks;
static tenrec_error err;

static struct group_lock new_lock(void)
{
    return (struct group_lock){
        .lease = { .store = store, .key = "lock", .lease_ms = LEASE_MS },
        .torch = store,
    };
}

static void begin(void)
{
    struct tenrec_store *inner;
    static int count;
    char url[32];

    snprintf(url, sizeof url, "memory://group_lock%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &inner, &err), &err);
    hooks = (struct hooks){ .inner = NULL };
    store = hooked_store(&hooks, inner);
    now_ns = __real_clock_now_ns();
    while_asleep = NULL;
}

static void end(void)
{
    tenrec_store_close(store);
}

/* In the time of the fake clock. */
static uint64_t in_ms(uint64_t ms)
{
    return now_ns + ms * 1000000u;
}

static void take(struct group_lock *l)
{
    assert_status(group_lock_acquire(l, "me", in_ms(2 * GROUP_LOCK_TORCH_MS), &err), &err);
    assert_true(lease_kept(&l->lease, in_ms(TEST_MS)));
}

/* As in torch: the value of the lock, "" while it is free. */
static void assert_token(const char *expected)
{
    void *now = NULL;

    assert_status(tenrec_store_get(store, TORCH_TOKEN, 0, &now, NULL, &err), &err);
    assert_string_equal(now, expected);
    free(now);
}

static void assert_waiters_wait(const char *token, bool expected)
{
    bool there;

    assert_status(tenrec_store_check(store, &token, 1, TEST_MS, &there, &err), &err);
    assert_int_equal(there, !expected);
}

static void torch_sets(const char *key, const char *value)
{
    assert_status(tenrec_store_set(store, key, value, strlen(value), TEST_MS, &err), &err);
}

TEST_WITH(group_lock_keeps_torch_out_while_held, begin, end)
{
    struct group_lock l = new_lock();

    for (int i = 0; i < 2; i++) {
        take(&l);
        assert_token(GROUP_LOCK_TOKEN);
        assert_waiters_wait(GROUP_LOCK_TOKEN, true);
        group_lock_release(&l, in_ms(TEST_MS));
        assert_false(lease_kept(&l.lease, in_ms(TEST_MS)));
        assert_token("");
        assert_waiters_wait(GROUP_LOCK_TOKEN, false);
    }
}

TEST_WITH(group_lock_waits_for_torch_and_reports_the_wait, begin, end)
{
    struct group_lock l = new_lock(), other = new_lock();

    torch_sets(TORCH_TOKEN, THEIRS);
    assert_int_equal(group_lock_acquire(&l, "me", in_ms(500), &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "worker of torch holds the lock of the group ('" THEIRS "')");
    assert_true(l.others);
    /* Meanwhile no Tenrec member has the lease. */
    assert_status(lease_acquire(&other.lease, "other", in_ms(0), &err), &err);
    assert_int_equal(group_lock_acquire(&l, "me", in_ms(500), &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'other' holds the lock of the group");
    assert_true(l.others);
    lease_release(&other.lease, in_ms(TEST_MS));
}

static void torch_lets_go(void)
{
    torch_sets(TORCH_TOKEN, "");
    torch_sets(THEIRS, "Done");
    while_asleep = NULL;
}

TEST_WITH(group_lock_is_acquired_after_the_release_by_torch, begin, end)
{
    struct group_lock l = new_lock();
    const uint64_t since = now_ns;

    torch_sets(TORCH_TOKEN, THEIRS);
    while_asleep = torch_lets_go;
    take(&l);
    assert_true(now_ns - since < LEASE_MS * UINT64_C(1000000));
    group_lock_release(&l, in_ms(TEST_MS));
}

TEST_WITH(group_lock_of_a_dead_torch_worker_is_taken_over, begin, end)
{
    struct group_lock l = new_lock();
    const uint64_t since = now_ns;
    int tries = 0;

    torch_sets(TORCH_TOKEN, THEIRS);
    /* Also by one whose tries are shorter. */
    while (group_lock_acquire(&l, "me", in_ms(GROUP_LOCK_TORCH_MS / 4), &err) == TENREC_ETIMEDOUT)
        assert_true(++tries < 8);
    assert_true(lease_kept(&l.lease, in_ms(TEST_MS)));
    assert_true(now_ns - since >= GROUP_LOCK_TORCH_MS * UINT64_C(1000000));
    assert_token(GROUP_LOCK_TOKEN);
    assert_waiters_wait(THEIRS, false);
    group_lock_release(&l, in_ms(TEST_MS));
    assert_token("");
}

/* Torch's change while one after the other waits: none of them is dead. */
static void torch_hands_on(void)
{
    static int n;
    char token[32];

    snprintf(token, sizeof token, "Token_for_w%d_leave", n++);
    torch_sets(TORCH_TOKEN, token);
}

TEST_WITH(group_lock_of_torch_workers_that_change_is_not_taken_over, begin, end)
{
    struct group_lock l = new_lock();

    torch_hands_on();
    while_asleep = torch_hands_on;
    assert_int_equal(group_lock_acquire(&l, "me", in_ms(2 * GROUP_LOCK_TORCH_MS), &err),
                     TENREC_ETIMEDOUT);
}

TEST_WITH(group_lock_of_a_dead_tenrec_worker_is_free_after_its_lease, begin, end)
{
    struct group_lock dead = new_lock(), l = new_lock();
    const uint64_t since = now_ns;

    take(&dead);
    take(&l);
    assert_true(now_ns - since < 2 * LEASE_MS * UINT64_C(1000000));
    assert_waiters_wait(GROUP_LOCK_TOKEN, true);
    group_lock_release(&l, in_ms(TEST_MS));
    assert_token("");
    assert_waiters_wait(GROUP_LOCK_TOKEN, false);
}

TEST_WITH(group_lock_that_was_lost_is_not_released, begin, end)
{
    struct group_lock slow = new_lock(), l = new_lock();

    take(&slow);
    take(&l);
    assert_false(lease_kept(&slow.lease, in_ms(TEST_MS)));
    group_lock_release(&slow, in_ms(TEST_MS));
    assert_token(GROUP_LOCK_TOKEN);
    assert_waiters_wait(GROUP_LOCK_TOKEN, true);
    assert_true(lease_kept(&l.lease, in_ms(TEST_MS)));
    group_lock_release(&l, in_ms(TEST_MS));
}

/* Held for longer than the lease, without another member that wanted it. */
TEST_WITH(group_lock_without_a_successor_is_released, begin, end)
{
    struct group_lock l = new_lock();

    take(&l);
    now_ns += 5 * LEASE_MS * UINT64_C(1000000);
    assert_true(lease_kept(&l.lease, in_ms(TEST_MS)));
    group_lock_release(&l, in_ms(TEST_MS));
    assert_token("");
}

static tenrec_status lose_token(enum hooked_op op, const char *key)
{
    (void)op;
    if (strcmp(key, TORCH_TOKEN) != 0)
        return TENREC_OK;
    hooks.before = hooks.after = NULL;
    return TENREC_EPEER_LOST;
}

TEST_WITH(group_lock_is_released_when_the_answer_was_lost, begin, end)
{
    struct group_lock l = new_lock();

    hooks.after = lose_token;
    assert_int_equal(group_lock_acquire(&l, "me", in_ms(TEST_MS), &err), TENREC_EPEER_LOST);
    assert_false(l.others);
    assert_token("");
    hooks.before = lose_token;
    assert_int_equal(group_lock_acquire(&l, "me", in_ms(TEST_MS), &err), TENREC_EPEER_LOST);
    take(&l);
    group_lock_release(&l, in_ms(TEST_MS));
}
