/* SPDX-License-Identifier: Apache-2.0 */
/* recycle_test.c - freed blocks that threads keep. Where nothing is kept the cases check that. */
#include "../testing.h"
#include "core/base/recycle.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS (RECYCLE_MAX + RECYCLE_BATCH)

static void *block[BLOCKS];

static bool is_ours(const void *found)
{
    bool ours = false;

    for (unsigned i = 0; i < BLOCKS; i++)
        ours = ours || block[i] == found;
    return ours;
}

/* Frees them all, and ends with half of what a thread may keep. */
static void *free_blocks(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (!recycle_push(RECYCLE_FUTURES, block[i]))
            free(block[i]);
    return NULL;
}

static void make_blocks(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_non_null(block[i] = malloc(64));
}

static void free_blocks_elsewhere(void)
{
    pthread_t other;

    make_blocks();
    assert_int_equal(pthread_create(&other, NULL, free_blocks, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
}

TEST(recycle_returns_the_block_that_the_thread_freed_last)
{
    void *own = malloc(64);

    if (recycle_push(RECYCLE_MESSAGES, own)) {
        assert_true(RECYCLE);
        assert_null(recycle_pop(RECYCLE_FUTURES)); /* of another kind */
        assert_ptr_equal(recycle_pop(RECYCLE_MESSAGES), own);
        assert_null(recycle_pop(RECYCLE_MESSAGES));
    } else {
        assert_false(RECYCLE);
    }
    free(own);
}

TEST(recycle_returns_blocks_that_another_thread_freed)
{
    unsigned n = 0;

    free_blocks_elsewhere();
    assert_null(recycle_pop(RECYCLE_FUTURES));
    for (void *b; (b = recycle_fetch(RECYCLE_FUTURES)); n++) {
        assert_true(is_ours(b));
        while (b) {
            free(b);
            b = recycle_pop(RECYCLE_FUTURES);
        }
    }
    assert_int_equal(n,
                     RECYCLE ? 1 : 0); /* the depot had one batch; the rest went with its thread */
}

TEST(recycle_has_nothing_of_other_threads_in_the_child_of_a_fork)
{
    int status = -1;
    pid_t child;
    void *b;

    free_blocks_elsewhere();
    child = fork();
    if (child == 0)
        _exit(recycle_fetch(RECYCLE_FUTURES) ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    b = recycle_fetch(RECYCLE_FUTURES); /* the parent has its blocks */
    assert_true(RECYCLE ? is_ours(b) : !b);
    free(b);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
