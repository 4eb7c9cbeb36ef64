/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of large blocks: what it keeps, for how long, and what it counts.
 * Where blocks are not recycled (base/recycle.h) nothing is kept, and the same
 * cases see to that. */
#include "core/base/clock.h"
#include "core/base/recycle.h"
#include "core/tensor/storage_pool.h"

#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>

#define MIB ((size_t)1 << 20)
#define KEPT(n) (RECYCLE ? (n) : 0)

static uint64_t woken_ns;
static int wakes;

static void note_wake(uint64_t deadline_ns)
{
    woken_ns = deadline_ns;
    wakes++;
}

static void *take(struct storage_pool *p, size_t bytes, unsigned *ret_class)
{
    void *data = storage_pool_take(p, bytes, ret_class);

    assert_non_null(data);
    memset(data, 1, bytes);
    return data;
}

static void take_and_give(struct storage_pool *p, size_t bytes)
{
    unsigned class;
    void *data = take(p, bytes, &class);

    storage_pool_give(p, data, class);
}

static uint64_t long_after(void)
{
    return clock_now_ns() + (STORAGE_POOL_IDLE_MS + 1) * UINT64_C(1000000);
}

TEST(storage_pool_gives_a_block_again)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct storage_counts c;

    storage_pool_allow(&p, 64 * MIB);
    take_and_give(&p, 3 * MIB);
    take_and_give(&p, 3 * MIB - 100);
    c = storage_pool_count(&p);
    assert_int_equal(c.reused, KEPT(1));
    assert_int_equal(c.fresh, 2 - KEPT(1));
    assert_int_equal(c.kept_blocks, KEPT(1));
    assert_int_equal(c.kept_bytes, KEPT(3) * MIB);
    assert_int_equal(c.used_blocks, 0);
    assert_int_equal(c.used_bytes, 0);
    storage_pool_deny(&p, 64 * MIB);
}

TEST(storage_pool_counts_blocks_in_use)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct storage_counts c;
    unsigned class[2];
    void *data[2];

    data[0] = take(&p, 1 * MIB, &class[0]);
    data[1] = take(&p, 5 * MIB, &class[1]);
    c = storage_pool_count(&p);
    assert_int_equal(c.used_blocks, 2);
    assert_int_equal(c.used_bytes, 6 * MIB);
    for (int i = 0; i < 2; i++)
        storage_pool_give(&p, data[i], class[i]);
    c = storage_pool_count(&p);
    assert_int_equal(c.used_blocks, 0);
    assert_int_equal(c.used_bytes, 0);
}

TEST(storage_pool_wastes_a_quarter_at_most)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    unsigned class;

    for (size_t bytes = STORAGE_POOL_MIN; bytes < 40 * MIB; bytes += bytes / 7 + 1) {
        void *data = storage_pool_take(&p, bytes, &class);
        assert_non_null(data);
        assert_true(storage_pool_bytes(class) >= bytes);
        assert_true(storage_pool_bytes(class) <= bytes + bytes / 4);
        storage_pool_give(&p, data, class);
    }
    for (size_t bytes = STORAGE_POOL_MIN; bytes < 40 * MIB; bytes *= 2) {
        void *data = storage_pool_take(&p, bytes, &class);
        assert_non_null(data);
        assert_int_equal(storage_pool_bytes(class), bytes);
        storage_pool_give(&p, data, class);
    }
}

TEST(storage_pool_refuses_sizes_beyond_any_machine)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    unsigned class;

    assert_null(storage_pool_take(&p, PTRDIFF_MAX, &class));
    if (RECYCLE) /* AddressSanitizer ends the program instead */
        assert_null(storage_pool_take(&p, (size_t)1 << 46, &class));
    assert_int_equal(storage_pool_count(&p).used_bytes, 0);
    assert_int_equal(storage_pool_count(&p).fresh, 0);
}

TEST(storage_pool_keeps_no_more_than_its_limit)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    unsigned class[4];
    void *data[4];

    storage_pool_allow(&p, 7 * MIB);
    for (int i = 0; i < 4; i++)
        data[i] = take(&p, 2 * MIB, &class[i]);
    for (int i = 0; i < 4; i++) {
        storage_pool_give(&p, data[i], class[i]);
        assert_true(storage_pool_count(&p).kept_bytes <= 7 * MIB);
    }
    assert_int_equal(storage_pool_count(&p).kept_blocks, KEPT(3));
    /* One that is larger than all that may be kept drives nothing out. */
    take_and_give(&p, 8 * MIB);
    assert_int_equal(storage_pool_count(&p).kept_blocks, KEPT(3));
    storage_pool_deny(&p, 4 * MIB);
    assert_int_equal(storage_pool_count(&p).kept_blocks, KEPT(1));
    storage_pool_deny(&p, 3 * MIB);
    assert_int_equal(storage_pool_count(&p).kept_bytes, 0);
}

TEST(storage_pool_keeps_nothing_by_default)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };

    p.wake = note_wake;
    wakes = 0;
    take_and_give(&p, 1 * MIB);
    assert_int_equal(storage_pool_count(&p).kept_blocks, 0);
    assert_int_equal(wakes, 0);
}

TEST(storage_pool_asks_to_be_woken_once_while_blocks_are_kept)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    const uint64_t before = clock_now_ns();

    p.wake = note_wake;
    wakes = 0;
    storage_pool_allow(&p, 64 * MIB);
    take_and_give(&p, 1 * MIB);
    assert_int_equal(wakes, KEPT(1));
    if (RECYCLE)
        assert_true(woken_ns >= before + STORAGE_POOL_IDLE_MS * UINT64_C(1000000));
    take_and_give(&p, 4 * MIB);
    assert_int_equal(wakes, KEPT(1));
    storage_pool_deny(&p, 64 * MIB);
}

TEST(storage_pool_returns_blocks_unused_for_a_while)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    uint64_t next;

    storage_pool_allow(&p, 64 * MIB);
    take_and_give(&p, 1 * MIB);
    take_and_give(&p, 4 * MIB);
    next = storage_pool_trim(&p, clock_now_ns());
    assert_int_equal(storage_pool_count(&p).kept_blocks, KEPT(2));
    assert_int_equal(next == CLOCK_NEVER, !RECYCLE);
    /* At the time that it asked for the older one goes. */
    if (RECYCLE)
        next = storage_pool_trim(&p, next);
    assert_true(storage_pool_count(&p).kept_blocks <= 1);
    assert_true(storage_pool_trim(&p, long_after()) == CLOCK_NEVER);
    assert_int_equal(storage_pool_count(&p).kept_bytes, 0);
    (void)next;
}

TEST(storage_pool_aligns_blocks_for_huge_pages)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    unsigned class;
    void *data = take(&p, 5 * MIB, &class);

    if (RECYCLE)
        assert_int_equal((uintptr_t)data % STORAGE_POOL_HUGE, 0);
    assert_int_equal((uintptr_t)data % 64, 0);
    storage_pool_give(&p, data, class);
}

/* ---- threads --------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

static _Atomic int go;

static void *churn(void *arg)
{
    struct storage_pool *p = arg;
    unsigned class[3];
    char *data[3];

    while (!atomic_load(&go))
        ;
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 3; k++) {
            data[k] = storage_pool_take(p, STORAGE_POOL_MIN << k, &class[k]);
            if (!data[k])
                return "out of memory";
            memset(data[k], k, 64);
        }
        for (int k = 0; k < 3; k++) {
            if (data[k][63] != k)
                return "a block was given out twice";
            storage_pool_give(p, data[k], class[k]);
        }
        if (i % 16 == 0)
            storage_pool_trim(p, i % 32 ? clock_now_ns() : long_after());
    }
    return NULL;
}

TEST(storage_pool_serves_threads_at_once)
{
    struct storage_pool p = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct storage_counts c;
    pthread_t thread[THREADS];
    void *why;

    storage_pool_allow(&p, 6 * MIB);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, &p), 0);
    atomic_store(&go, 1);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &why), 0);
        if (why)
            fail_msg("%s", (const char *)why);
    }
    c = storage_pool_count(&p);
    assert_int_equal(c.used_blocks, 0);
    assert_int_equal(c.used_bytes, 0);
    assert_int_equal(c.fresh + c.reused, THREADS * ROUNDS * 3);
    assert_true(c.kept_bytes <= 6 * MIB);
    storage_pool_deny(&p, 6 * MIB);
    assert_int_equal(storage_pool_count(&p).kept_blocks, 0);
}
