/* SPDX-License-Identifier: Apache-2.0 */
/* shared_memory_test.c - shared memory at its owner: the placement of blocks, their reuse,
 * and the return of pages to the system. */
#include "../support/tensors.h"
#include "../testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenrec/tensor.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"

#define MIB ((size_t)1 << 20)

static struct shared_block *make(size_t bytes, bool moves)
{
    struct shared_block *b = NULL;
    tenrec_error err;

    assert_status(shared_block_new(bytes, moves, &b, &err), &err);
    return b;
}

static uint64_t long_after(void)
{
    return clock_now_ns() + (STORAGE_POOL_IDLE_MS + 1) * UINT64_C(1000000);
}

/* The memory of the machine that its region uses. */
static size_t resident(const struct shared_block *b)
{
    struct stat st;

    assert_int_equal(fstat(shared_block_fd(b), &st), 0);
    return (size_t)st.st_blocks * 512;
}

static void allow(void)
{
    storage_pool_allow(storage_pool_of_process(), 512 * MIB);
}

static void deny(void)
{
    assert_true(shared_memory_trim(long_after()) == CLOCK_NEVER);
    assert_int_equal(shared_memory_count().regions, 0);
    assert_int_equal(shared_memory_count().blocks, 0);
    storage_pool_deny(storage_pool_of_process(), 512 * MIB);
}

TEST_WITH(shared_memory_puts_small_blocks_into_one_region, allow, deny)
{
    struct shared_block *a = make(100, false), *b = make(5000, false);

    assert_int_equal(shared_block_region(a), shared_block_region(b));
    assert_int_equal((char *)shared_block_data(b) - (char *)shared_block_data(a), 4096);
    assert_int_equal(shared_memory_count().regions, 1);
    assert_int_equal(shared_memory_count().blocks, 2);
    memset(shared_block_data(a), 1, 4096);
    memset(shared_block_data(b), 2, 8192);
    shared_block_drop(a);
    shared_block_drop(b);
    assert_int_equal(shared_memory_count().blocks, 0);
}

TEST_WITH(shared_memory_gives_a_large_block_its_own_region_and_again, allow, deny)
{
    struct shared_block *a = make(40 * MIB, false), *b;
    const uint64_t region = shared_block_region(a);

    b = make(40 * MIB, false);
    assert_true(shared_block_region(b) != region);
    shared_block_drop(b);
    shared_block_drop(a);
    a = make(39 * MIB, false);
    b = make(38 * MIB, false);
    assert_int_equal(shared_memory_count().regions, 2);
    shared_block_drop(a);
    shared_block_drop(b);
    /* Much smaller: it would waste what lies there. */
    a = make(17 * MIB, false);
    assert_int_equal(shared_memory_count().regions, 3);
    shared_block_drop(a);
}

TEST_WITH(shared_memory_uses_a_block_again_only_when_dropped_by_all, allow, deny)
{
    struct shared_block *a = make(20 * MIB, false), *other, *b;
    void *data = shared_block_data(a);

    other = shared_block_at(data, 1);
    assert_ptr_equal(other, a);
    shared_block_drop(a);
    b = make(20 * MIB, false);
    assert_ptr_not_equal(shared_block_data(b), data);
    shared_block_drop(b);
    shared_block_drop(other);
    a = make(20 * MIB, false);
    b = make(20 * MIB, false);
    assert_true(shared_block_data(a) == data || shared_block_data(b) == data);
    shared_block_drop(a);
    shared_block_drop(b);
}

TEST_WITH(shared_memory_finds_a_block_by_any_part_of_the_block, allow, deny)
{
    struct shared_block *a = make(10000, false), *b = make(10000, false), *found;
    char *data = shared_block_data(a);
    int elsewhere;

    found = shared_block_at(data + 64, 9000);
    assert_ptr_equal(found, a);
    assert_int_equal(shared_block_offset(found, data + 64), 64);
    shared_block_drop(found);
    assert_null(shared_block_at(data, 13000)); /* reaches into the other one */
    assert_null(shared_block_at(&elsewhere, 1));
    assert_null(shared_block_at(data, UINT64_MAX));
    shared_block_drop(a);
    assert_null(shared_block_at(data, 1));
    shared_block_drop(b);
}

TEST_WITH(shared_memory_returns_unused_pages, allow, deny)
{
    struct shared_block *a = make(4 * MIB, false), *b = make(1 * MIB, false);

    memset(shared_block_data(a), 1, 4 * MIB);
    memset(shared_block_data(b), 2, 1 * MIB);
    assert_true(resident(b) >= 5 * MIB);
    shared_block_drop(a);
    assert_true(shared_memory_trim(clock_now_ns()) != CLOCK_NEVER);
    assert_true(resident(b) >= 5 * MIB);
    assert_true(shared_memory_trim(long_after()) == CLOCK_NEVER);
    assert_int_equal(resident(b), 1 * MIB);
    assert_int_equal(((char *)shared_block_data(b))[MIB - 1], 2);
    shared_block_drop(b);
    assert_true(shared_memory_trim(clock_now_ns()) != CLOCK_NEVER);
    assert_int_equal(shared_memory_count().regions, 1);
}

TEST_WITH(shared_memory_keeps_no_more_than_the_pool_may, allow, deny)
{
    storage_pool_deny(storage_pool_of_process(), 512 * MIB);
    shared_block_drop(make(40 * MIB, false));
    assert_int_equal(shared_memory_count().regions, 0);
    storage_pool_allow(storage_pool_of_process(), 512 * MIB);
    for (int i = 0; i < 2; i++) {
        struct shared_block *a = make(250 * MIB, false), *b = make(400 * MIB, false);
        shared_block_drop(a);
        shared_block_drop(b);
        assert_int_equal(shared_memory_count().regions, 1);
    }
}

TEST_WITH(shared_memory_moves_a_block_once, allow, deny)
{
    struct shared_block *a = make(100, true), *b = make(100, true);

    assert_true(shared_block_region(a) != shared_block_region(b));
    assert_int_equal(shared_block_way(a), SHARED_MOVED);
    assert_int_equal(shared_block_way(a), SHARED_COPIED);
    assert_int_equal(shared_block_way(b), SHARED_MOVED);
    shared_block_stay(b, SHARED_MOVED);
    assert_int_equal(shared_block_way(b), SHARED_MOVED);
    shared_block_drop(a);
    assert_int_equal(shared_memory_count().regions, 1); /* it is not ours to use again */
    shared_block_drop(b);
    assert_int_equal(shared_memory_count().regions, 0);
}

TEST_WITH(shared_memory_reports_a_lack_of_descriptors, allow, deny)
{
    struct rlimit before, none;
    struct tenrec_tensor *t = NULL;
    const int64_t shape[] = { 40 << 20 };
    tenrec_error err;
    tenrec_status st;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 3, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    st = tensors_new(TENREC_UINT8, 1, shape, TENREC_SHARED, &t, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(st, TENREC_EOS);
    assert_null(t);
}

TEST_WITH(shared_memory_reports_a_lack_of_memory, allow, deny)
{
    const int64_t shape[] = { INT64_C(1) << 46 };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_int_equal(tensors_new(TENREC_FLOAT32, 1, shape, TENREC_SHARED, &t, &err), TENREC_ENOMEM);
    assert_null(t);
}

TEST_WITH(shared_tensor_is_made_like_other_tensors, allow, deny)
{
    const int64_t shape[] = { 3, 0x10000 }, none[] = { 0 };
    const struct tenrec_tensor_desc *d;
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tensors_new(TENREC_FLOAT32, 2, shape, TENREC_SHARED, &t, &err), &err);
    d = tenrec_tensor_desc(t);
    assert_int_equal(d->bytes, 4 * 3 * 0x10000);
    assert_int_equal(d->strides[0], 0x10000);
    assert_int_equal(d->flags, 0);
    assert_int_equal((uintptr_t)d->data % 64, 0);
    memset(d->data, 1, d->bytes);
    tenrec_tensor_drop(t);
    assert_status(tensors_new(TENREC_FLOAT32, 1, none, TENREC_SHARED, &t, &err), &err);
    tenrec_tensor_drop(t);
    assert_status(tensors_new(TENREC_FLOAT32, 2, shape, 0, &t, &err), &err);
    assert_null(shared_block_at(tenrec_tensor_data(t), 1));
    tenrec_tensor_drop(t);
    assert_int_equal(tensors_new(TENREC_FLOAT32, 2, shape, TENREC_MOVES, &t, &err), TENREC_EINVAL);
    assert_int_equal(tensors_new(TENREC_FLOAT32, 2, shape, 8, &t, &err), TENREC_EINVAL);
    assert_int_equal(
        tensors_new((struct tenrec_dtype){ 0, 3, 1 }, 2, shape, TENREC_SHARED, &t, &err),
        TENREC_EINVAL);
}

TEST_WITH(shared_tensor_is_copied_into_private_memory, allow, deny)
{
    const int64_t shape[] = { 4, 1000 };
    struct tenrec_tensor *t = NULL, *copy = NULL;
    tenrec_error err;

    assert_status(tensors_new(TENREC_INT32, 2, shape, TENREC_SHARED, &t, &err), &err);
    for (int i = 0; i < 4000; i++)
        ((int32_t *)tenrec_tensor_data(t))[i] = i;
    assert_status(tenrec_tensor_copy(t, &copy, &err), &err);
    assert_null(shared_block_at(tenrec_tensor_data(copy), 1));
    assert_memory_equal(tenrec_tensor_data(copy), tenrec_tensor_data(t), 16000);
    tenrec_tensor_drop(copy);
    tenrec_tensor_drop(t);
}

/* A child has the same pages: whatever it drops, they are its parent's. */
TEST_WITH(shared_memory_is_left_alone_by_a_child, allow, deny)
{
    const int64_t shape[] = { 1 << 20 };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;
    int status;
    pid_t child;

    assert_status(tensors_new(TENREC_UINT8, 1, shape, TENREC_SHARED, &t, &err), &err);
    memset(tenrec_tensor_data(t), 7, 1 << 20);
    child = fork();
    if (child == 0) {
        const bool found = shared_block_at(tenrec_tensor_data(t), 1) != NULL;
        tenrec_tensor_drop(t);
        shared_memory_trim(long_after());
        _exit(found || shared_memory_count().regions > 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(((unsigned char *)tenrec_tensor_data(t))[1000], 7);
    tenrec_tensor_drop(t);
}

/* ---- threads ------------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 300 };

static void *churn(void *arg)
{
    const unsigned char mark = *(const unsigned char *)arg;
    struct shared_block *b[4];

    for (int i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < 4; k++) {
            if (shared_block_new(1000 + k * 5000, false, &b[k], NULL) != TENREC_OK)
                return "out of memory";
            memset(shared_block_data(b[k]), mark, 1000);
        }
        for (size_t k = 0; k < 4; k++) {
            const unsigned char *p = shared_block_data(b[k]);
            struct shared_block *again = shared_block_at(p, 1000);
            if (again != b[k] || p[0] != mark || p[999] != mark)
                return "a block was given out twice";
            shared_block_drop(again);
            shared_block_drop(b[k]);
        }
        if (i % 32 == 0)
            shared_memory_trim(long_after());
    }
    return NULL;
}

TEST_WITH(shared_memory_serves_threads_at_once, allow, deny)
{
    static const unsigned char mark[THREADS] = { 1, 2, 3, 4 };
    pthread_t thread[THREADS];
    void *why;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, (void *)(uintptr_t)&mark[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &why), 0);
        if (why)
            fail_msg("%s", (const char *)why);
    }
    assert_int_equal(shared_memory_count().blocks, 0);
}
