/* SPDX-License-Identifier: Apache-2.0 */
/* pending_test.c - exactly one thread removes an entry. */
#include "core/chain/pending.h"

#include "core/base/clock.h"

#include "../testing.h"

/* The table never looks into a future. */
static struct tenrec_future *fake(uintptr_t n)
{
    return (struct tenrec_future *)n; // NOLINT(performance-no-int-to-ptr)
}

static int64_t add(struct pending *p, uintptr_t n, tenrec_peer to, uint64_t deadline_ns)
{
    struct pending_entry e = { .future = fake(n), .to = to, .deadline_ns = deadline_ns };
    int64_t id = -1;

    assert_int_equal(pending_add(p, &e, &id), TENREC_OK);
    assert_true(id >= 0);
    return id;
}

TEST(pending_gives_an_entry_once_when_taken_twice)
{
    struct pending_entry e;
    struct pending p;
    int64_t id;

    pending_init(&p);
    id = add(&p, 7, 1, CLOCK_NEVER);
    assert_true(pending_take(&p, id, &e));
    assert_ptr_equal(e.future, fake(7));
    assert_false(pending_take(&p, id, &e));
    pending_finish(&p);
}

TEST(pending_finds_nothing_when_the_slot_is_used_again)
{
    struct pending_entry e;
    int64_t first, second;
    struct pending p;

    pending_init(&p);
    first = add(&p, 1, 0, CLOCK_NEVER);
    assert_true(pending_take(&p, first, &e));
    second = add(&p, 2, 0, CLOCK_NEVER);
    assert_int_not_equal(first, second);
    assert_false(pending_take(&p, first, &e));
    assert_true(pending_take(&p, second, &e));
    pending_finish(&p);
}

TEST(pending_finds_nothing_when_the_id_is_any_number)
{
    static const int64_t ids[] = { 0, -1, 1, INT64_MAX, INT64_MIN, 255, 256, 1 << 20 };
    struct pending_entry e;
    struct pending p;
    int64_t id;

    pending_init(&p);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_false(pending_take(&p, ids[i], &e));
    id = add(&p, 1, 0, CLOCK_NEVER);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (ids[i] != id)
            assert_false(pending_take(&p, ids[i], &e));
    assert_false(pending_take(&p, -id, &e));
    assert_false(pending_take(&p, id + (1 << 20), &e));
    assert_true(pending_take(&p, id, &e));
    pending_finish(&p);
}

TEST(pending_looks_into_an_entry_only_for_its_peer)
{
    struct pending_entry e;
    struct pending p;
    int64_t id;

    pending_init(&p);
    id = add(&p, 3, 1, CLOCK_NEVER);
    assert_false(pending_peek_from(&p, id, 2, &e));
    assert_false(pending_take_from(&p, id, 2, &e));
    assert_true(pending_peek_from(&p, id, 1, &e));
    assert_ptr_equal(e.future, fake(3));
    assert_true(pending_has(&p, id));
    assert_true(pending_take_from(&p, id, 1, &e));
    assert_false(pending_has(&p, id));
    assert_false(pending_peek_from(&p, id, 1, &e));
    pending_finish(&p);
}

TEST(pending_counts_on_when_its_own_count_wraps)
{
    const uint64_t many = (UINT64_C(1) << 43) - 2;
    struct pending_entry e;
    struct pending p;
    int64_t id[4];

    pending_init(&p);
    assert_true(pending_take(&p, add(&p, 1, 0, CLOCK_NEVER), &e));
    assert_int_equal(pending_added(&p, 1), 1);
    atomic_fetch_add(&p.head, (many - 1) * PENDING_POP);
    for (int i = 0; i < 4; i++)
        id[i] = add(&p, (uintptr_t)i + 1, 0, CLOCK_NEVER);
    assert_int_equal(pending_added(&p, many), many + 4);
    assert_int_equal(pending_added(&p, many + 3), many + 4);
    for (int i = 0; i < 4; i++) {
        assert_true(pending_take(&p, id[i], &e));
        assert_ptr_equal(e.future, fake((uintptr_t)i + 1));
    }
    pending_finish(&p);
}

TEST(pending_takes_late_entries_only_when_told_the_time)
{
    uint64_t next = CLOCK_NEVER;
    struct pending_entry e;
    uint32_t at = 0;
    struct pending p;
    int64_t late, soon, never;

    pending_init(&p);
    soon = add(&p, 1, 0, 200);
    late = add(&p, 2, 0, 100);
    never = add(&p, 3, 0, CLOCK_NEVER);
    assert_true(pending_take_late(&p, 150, &at, &e, &next));
    assert_ptr_equal(e.future, fake(2));
    assert_false(pending_take_late(&p, 150, &at, &e, &next));
    assert_int_equal(next, 200);
    assert_false(pending_take(&p, late, &e));
    assert_true(pending_take(&p, soon, &e));
    assert_true(pending_take(&p, never, &e));
    pending_finish(&p);
}

TEST(pending_takes_all_entries_of_a_lost_peer)
{
    struct pending_entry e;
    struct pending p;
    uint32_t at = 0;
    size_t n = 0;

    pending_init(&p);
    for (uintptr_t i = 0; i < 1000; i++)
        add(&p, i + 1, i % 2, CLOCK_NEVER);
    while (pending_take_peer(&p, 1, &at, &e)) {
        assert_int_equal(e.to, 1);
        n++;
    }
    assert_int_equal(n, 500);
    at = 0;
    while (pending_take_peer(&p, -1, &at, &e))
        n++;
    assert_int_equal(n, 1000);
    pending_finish(&p);
}

/* ---- many threads --------------------------------------------------------------------------- */

/* More calls in a round than a chunk has slots. */
enum { ADDERS = 4, ROUNDS = 150, PER_ROUND = 400, CALLS = ROUNDS * PER_ROUND, PEERS = 3 };

static struct crowd {
    struct pending table;
    pthread_barrier_t barrier; /* of the adders */
    _Atomic int64_t id[CALLS]; /* of call n, once it is added; 0 before */
    atomic_uint taken[CALLS];  /* how often */
    atomic_uint ended, round, adders;
} crowd;

static void note_taken(const struct pending_entry *e)
{
    const uintptr_t n = (uintptr_t)e->future - 1;

    /* The entry is whole. */
    assert_int_equal(e->to, n % PEERS);
    assert_int_equal(e->deadline_ns, n + 1);
    atomic_fetch_add(&crowd.taken[n], 1);
    atomic_fetch_add(&crowd.ended, 1);
}

/* All adders add, and then all try to take the same calls in the same order. */
static void *add_and_take(void *arg)
{
    struct pending_entry e;

    for (uintptr_t first = 0; first < CALLS; first += PER_ROUND) {
        atomic_store(&crowd.round, (unsigned)first);
        for (uintptr_t n = first + (uintptr_t)arg; n < first + PER_ROUND; n += ADDERS)
            atomic_store(&crowd.id[n], add(&crowd.table, n + 1, (tenrec_peer)(n % PEERS), n + 1));
        pthread_barrier_wait(&crowd.barrier);
        for (uintptr_t n = first; n < first + PER_ROUND; n++)
            if (pending_take(&crowd.table, atomic_load(&crowd.id[n]), &e)) {
                assert_ptr_equal(e.future, fake(n + 1));
                note_taken(&e);
            }
        pthread_barrier_wait(&crowd.barrier);
    }
    atomic_fetch_sub(&crowd.adders, 1);
    return NULL;
}

/* Takes calls as the answers of their peers, after a look, as long as calls are added. */
static void *answer(void *arg)
{
    struct pending_entry e;

    (void)arg;
    for (unsigned i = 0; atomic_load(&crowd.adders) > 0; i++) {
        const uintptr_t n = atomic_load(&crowd.round) + i % PER_ROUND;
        const int64_t id = atomic_load(&crowd.id[n]);
        const tenrec_peer to = (tenrec_peer)(n % PEERS);

        assert_false(pending_take_from(&crowd.table, id, (to + 1) % PEERS, &e));
        if (pending_peek_from(&crowd.table, id, to, &e))
            assert_ptr_equal(e.future, fake(n + 1));
        if (i % 8 == 0 && pending_take_from(&crowd.table, id, to, &e)) {
            assert_ptr_equal(e.future, fake(n + 1));
            note_taken(&e);
        }
    }
    return NULL;
}

/* Lets every other call expire, and loses a peer. */
static void *sweep(void *arg)
{
    struct pending_entry e;

    (void)arg;
    while (atomic_load(&crowd.adders) > 0) {
        uint64_t next = CLOCK_NEVER;
        uint32_t at = 0;

        while (pending_take_late(&crowd.table, CALLS / 2, &at, &e, &next)) {
            assert_true(e.deadline_ns <= CALLS / 2);
            note_taken(&e);
        }
        at = 0;
        while (pending_take_peer(&crowd.table, 1, &at, &e)) {
            assert_int_equal(e.to, 1);
            note_taken(&e);
        }
    }
    return NULL;
}

TEST(pending_gives_each_entry_to_one_of_many_threads)
{
    static void *(*const others[])(void *) = { answer, answer, sweep };
    pthread_t thread[ADDERS + 3];
    uint32_t at = 0;
    struct pending_entry e;

    pending_init(&crowd.table);
    assert_int_equal(pthread_barrier_init(&crowd.barrier, NULL, ADDERS), 0);
    atomic_store(&crowd.adders, ADDERS);
    for (uintptr_t i = 0; i < ADDERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_and_take, (void *)i), 0); // NOLINT
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[ADDERS + i], NULL, others[i], (void *)i), // NOLINT
                         0);
    for (int i = 0; i < ADDERS + 3; i++)
        pthread_join(thread[i], NULL);
    assert_false(pending_take_peer(&crowd.table, -1, &at, &e));
    assert_int_equal(atomic_load(&crowd.ended), CALLS);
    assert_int_equal(pending_added(&crowd.table, 0), CALLS);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(atomic_load(&crowd.taken[i]), 1);
    pthread_barrier_destroy(&crowd.barrier);
    pending_finish(&crowd.table);
}
