/* SPDX-License-Identifier: Apache-2.0 */
/* lease_test.c - the lock of a dynamic group, with a clock that the test moves. */
#include "test_store.h"

#include "base/clock.h"
#include "fake_clock.h"
#include "group/lease.h"

#define LEASE_MS 1000

static struct tenrec_store *store;
static tenrec_error err;

static struct lease new_lease(void)
{
    return (struct lease){ .store = store, .key = "lock", .lease_ms = LEASE_MS, .clock = &fake };
}

static struct lease other;

static int make_store(void **state)
{
    static int count;
    char url[32];

    (void)state;
    snprintf(url, sizeof url, "memory://lease%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &store, &err), &err);
    now_ns = clock_now_ns();
    while_asleep = NULL;
    other = new_lease();
    return 0;
}

static int drop_store(void **state)
{
    (void)state;
    tenrec_store_drop(store);
    return 0;
}

/* In the time of the fake clock. */
static uint64_t in_ms(uint64_t ms)
{
    return now_ns + ms * 1000000u;
}

static void lease_is_taken_and_let_go(void **state)
{
    struct lease l = new_lease();

    (void)state;
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

static void lease_waits_until_its_holder_lets_go(void **state)
{
    struct lease l = new_lease();
    const uint64_t since = now_ns;

    (void)state;
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    while_asleep = let_go_of_other;
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since < LEASE_MS * 1000000u);
    lease_release(&l, in_ms(TEST_MS));
}

static void lease_of_a_silent_holder_is_taken_over_when_it_has_ended(void **state)
{
    struct lease l = new_lease();
    const uint64_t since = now_ns;

    (void)state;
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since >= LEASE_MS * 1000000u);
    /* Who comes back from the dead lets go of nothing that is not its own. */
    lease_release(&other, in_ms(TEST_MS));
    other = new_lease();
    assert_int_equal(lease_acquire(&other, "other", in_ms(10), &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'me' holds the lock");
    lease_release(&l, in_ms(TEST_MS));
}

/* Another holder each time: none of them is dead. */
static void hand_on(void)
{
    lease_release(&other, in_ms(TEST_MS));
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
}

static void lease_of_holders_that_change_is_not_taken_over(void **state)
{
    struct lease l = new_lease();

    (void)state;
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    while_asleep = hand_on;
    assert_int_equal(lease_acquire(&l, "me", in_ms(5 * LEASE_MS), &err), TENREC_ETIMEDOUT);
    assert_false(l.held);
    lease_release(&other, in_ms(TEST_MS));
}

/* It is the holder who says how long it may be silent. */
static void lease_is_as_long_as_its_holder_says(void **state)
{
    struct lease l = new_lease();
    const uint64_t since = now_ns;

    (void)state;
    other.lease_ms = 3 * LEASE_MS;
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    assert_true(now_ns - since >= 3 * LEASE_MS * 1000000u);
    lease_release(&l, in_ms(TEST_MS));
}

/* Who gives up and tries again waits no longer in all. */
static void lease_is_watched_over_several_tries(void **state)
{
    struct lease l = new_lease();
    int tries = 0;

    (void)state;
    assert_status(lease_acquire(&other, "other", in_ms(TEST_MS), &err), &err);
    while (lease_acquire(&l, "me", in_ms(LEASE_MS / 4), &err) == TENREC_ETIMEDOUT)
        assert_true(++tries < 8);
    assert_true(l.held);
    assert_true(tries > 2);
    lease_release(&l, in_ms(TEST_MS));
}

static void lease_of_words_without_sense_ends_too(void **state)
{
    struct lease l = new_lease();

    (void)state;
    assert_status(tenrec_store_set(store, "lock", "???", 3, TEST_MS, &err), &err);
    assert_status(lease_acquire(&l, "me", in_ms(TEST_MS), &err), &err);
    lease_release(&l, in_ms(TEST_MS));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_store, drop_store)

int main(void)
{
    const struct CMUnitTest all[] = {
        CASE(lease_is_taken_and_let_go),
        CASE(lease_waits_until_its_holder_lets_go),
        CASE(lease_of_a_silent_holder_is_taken_over_when_it_has_ended),
        CASE(lease_of_holders_that_change_is_not_taken_over),
        CASE(lease_is_as_long_as_its_holder_says),
        CASE(lease_is_watched_over_several_tries),
        CASE(lease_of_words_without_sense_ends_too),
    };

    return cmocka_run_group_tests(all, NULL, NULL);
}
