/* SPDX-License-Identifier: Apache-2.0 */
/* lease_test.c - the lock of a dynamic group, with a clock that the test moves. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "fake_clock.h"
#include "group/membership/lease.h"
#include "group/membership/member_record.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE_MS 1000

static struct tenrec_store *store;
static tenrec_error err;

static struct lease new_lease(void)
{
    return (struct lease){ .store = store, .key = "lock", .lease_ms = LEASE_MS };
}

static struct lease other;

static void make_store(void)
{
    static int count;
    char url[32];

    snprintf(url, sizeof url, "memory://lease%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &store, &err), &err);
    now_ns = __real_clock_now_ns();
    while_asleep = NULL;
    other = new_lease();
}

static void drop_store(void)
{
    tenrec_store_close(store);
}

/* In the time of the fake clock. */
static uint64_t in_ms(uint64_t ms)
{
    return now_ns + ms * 1000000u;
}

TEST_WITH(lease_is_acquired_and_released, make_store, drop_store)
{
    struct lease l = new_lease();

    for (int i = 0; i < 3; i++) {
        assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
        assert_true(l.held);
        lease_release(&l, in_ms(TEST_MS));
        assert_false(l.held);
    }
}

static void let_go_of_other(void)
{
    lease_release(&other, in_ms(TEST_MS));
}

TEST_WITH(lease_waits_for_the_release_by_its_holder, make_store, drop_store)
{
    struct lease l = new_lease();
    const uint64_t since = now_ns;

    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    while_asleep = let_go_of_other;
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since < LEASE_MS * 1000000u);
    lease_release(&l, in_ms(TEST_MS));
}

TEST_WITH(lease_of_a_silent_holder_is_taken_over_when_expired, make_store, drop_store)
{
    struct lease l = new_lease();
    const uint64_t since = now_ns;

    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since >= LEASE_MS * 1000000u);
    /* A holder that was presumed dead must not release the lease of another. */
    lease_release(&other, in_ms(TEST_MS));
    other = new_lease();
    assert_int_equal(lease_acquire(&other, "other", in_ms(10), &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'me' holds the lock");
    lease_release(&l, in_ms(TEST_MS));
}

/* The token of a worker in a child process, which ends unless it is to live. */
static pid_t put_token_of_child(bool lives, int *ret_end)
{
    char process[MEMBER_PROCESS] = "", token[LEASE_TOKEN];
    int out[2], in[2];
    pid_t child;

    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(in), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char end;

        close(in[1]);
        member_write_process(process);
        _exit(write(out[1], process, sizeof process) != sizeof process || read(in[0], &end, 1));
    }
    close(in[0]);
    assert_int_equal(read(out[0], process, sizeof process), sizeof process);
    if (!lives) {
        close(in[1]);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    *ret_end = in[1];
    snprintf(token, sizeof token, "0123456789abcdef %d %s child", LEASE_MS, process);
    assert_status(store_set(store, "lock", token, strlen(token), in_ms(TEST_MS), &err), &err);
    close(out[0]);
    close(out[1]);
    return child;
}

TEST_WITH(lease_of_a_process_that_has_ended_is_taken_over_at_once, make_store, drop_store)
{
    struct lease l = new_lease();
    int end;

    put_token_of_child(false, &end);
    assert_status(lease_acquire(&l, "me", in_ms(LEASE_MS / 2), &err), &err);
    assert_true(l.held);
    lease_release(&l, in_ms(TEST_MS));
}

TEST_WITH(lease_of_another_process_that_lives_is_not_taken_over, make_store, drop_store)
{
    struct lease l = new_lease();
    int end;
    const pid_t child = put_token_of_child(true, &end);

    assert_int_equal(lease_acquire(&l, "me", in_ms(LEASE_MS / 2), &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'child' holds the lock");
    close(end);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Another holder each time: none of them is dead. */
static void hand_on(void)
{
    lease_release(&other, in_ms(TEST_MS));
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
}

TEST_WITH(lease_of_holders_that_change_is_not_taken_over, make_store, drop_store)
{
    struct lease l = new_lease();

    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    while_asleep = hand_on;
    assert_int_equal(lease_acquire(&l, "me", in_ms(5 * LEASE_MS), &err), TENREC_ETIMEDOUT);
    assert_false(l.held);
    lease_release(&other, in_ms(TEST_MS));
}

/* The holder sets the length of its lease. */
TEST_WITH(lease_is_as_long_as_its_holder_says, make_store, drop_store)
{
    struct lease l = new_lease();
    const uint64_t since = now_ns;

    other.lease_ms = 3 * LEASE_MS;
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since >= 3 * LEASE_MS * 1000000u);
    lease_release(&l, in_ms(TEST_MS));
}

/* A waiter that gives up and retries waits no longer in total. */
TEST_WITH(lease_is_watched_over_several_tries, make_store, drop_store)
{
    struct lease l = new_lease();
    int tries = 0;

    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    while (lease_acquire(&l, "me", in_ms(LEASE_MS / 4), &err) == TENREC_ETIMEDOUT)
        assert_true(++tries < 8);
    assert_true(l.held);
    assert_true(tries > 2);
    lease_release(&l, in_ms(TEST_MS));
}

TEST_WITH(lease_of_words_without_sense_ends_too, make_store, drop_store)
{
    struct lease l = new_lease();

    assert_status(tenrec_store_set(store, "lock", "???", 3, TEST_MS, &err), &err);
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    lease_release(&l, in_ms(TEST_MS));
}

TEST_WITH(lease_waiter_is_called_by_the_release, make_store, drop_store)
{
    struct lease l = new_lease();
    const char *next = "lock/2";
    bool missing;

    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    assert_int_equal(lease_acquire(&l, "me", in_ms(1), &err), TENREC_ETIMEDOUT);
    assert_status(store_check_all(store, &next, 1, in_ms(TEST_MS), &missing, &err), &err);
    assert_true(missing);
    lease_release(&other, in_ms(TEST_MS));
    assert_status(store_check_all(store, &next, 1, in_ms(TEST_MS), &missing, &err), &err);
    assert_false(missing);
    assert_status(lease_acquire(&l, "me", in_ms(0), &err), &err);
    lease_release(&l, in_ms(TEST_MS));
    assert_status(store_check_all(store, &next, 1, in_ms(TEST_MS), &missing, &err), &err);
    assert_true(missing);
}

/* The ticket before ours belongs to a worker that waits no more. */
TEST_WITH(lease_is_acquired_past_the_ticket_of_a_dead_waiter, make_store, drop_store)
{
    struct lease dead = new_lease(), l = new_lease(), after = new_lease();
    uint64_t since;

    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    assert_int_equal(lease_acquire(&dead, "dead", in_ms(1), &err), TENREC_ETIMEDOUT);
    lease_release(&other, in_ms(TEST_MS));
    since = now_ns;
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since < LEASE_MS * 1000000u);
    lease_release(&l, in_ms(TEST_MS));
    since = now_ns;
    assert_status(lease_acquire(&after, "after", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns == since); /* called again */
    lease_release(&after, in_ms(TEST_MS));
}
