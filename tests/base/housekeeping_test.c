/* SPDX-License-Identifier: Apache-2.0 */
/* Housekeeping: runs on whichever loop exists, and on none without one. */
#include "core/base/clock.h"
#include "core/base/loop.h"

#include "../testing.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { LONG_MS = 10000 };

static sem_t ran;
static _Atomic int runs;
static _Atomic int again; /* so often it wants to run at once once more */

static uint64_t job(uint64_t now_ns)
{
    atomic_fetch_add(&runs, 1);
    sem_post(&ran);
    if (atomic_load(&again) == 0)
        return CLOCK_NEVER;
    atomic_fetch_sub(&again, 1);
    return now_ns;
}

static int wait_for_run(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG_MS / 1000;
    return sem_timedwait(&ran, &until);
}

static void setup(void)
{
    atomic_store(&runs, 0);
    assert_int_equal(sem_init(&ran, 0, 0), 0);
}

static struct housekeeping *join(struct loop **ret_loop)
{
    struct housekeeping *u = NULL;

    assert_int_equal(loop_open(ret_loop, NULL), TENREC_OK);
    assert_int_equal(housekeeping_join(*ret_loop, &u, NULL), TENREC_OK);
    return u;
}

TEST_WITH(housekeeping_runs_at_its_time, setup, NULL)
{
    struct loop *l;
    struct housekeeping *u = join(&l);

    housekeeping_at(job, clock_now_ns());
    assert_int_equal(wait_for_run(), 0);
    housekeeping_leave(u);
    loop_close(l);
    assert_int_equal(atomic_load(&runs), 1);
}

TEST_WITH(housekeeping_runs_as_often_as_its_job_wants, setup, NULL)
{
    struct loop *l;
    struct housekeeping *u = join(&l);

    atomic_store(&again, 2);
    housekeeping_at(job, clock_now_ns());
    for (int i = 0; i < 3; i++)
        assert_int_equal(wait_for_run(), 0);
    housekeeping_leave(u);
    loop_close(l);
    assert_int_equal(atomic_load(&runs), 3);
}

TEST_WITH(housekeeping_waits_until_a_loop_is_there, setup, NULL)
{
    struct loop *l;
    struct housekeeping *u;

    housekeeping_at(job, clock_now_ns());
    assert_int_equal(atomic_load(&runs), 0);
    u = join(&l);
    assert_int_equal(wait_for_run(), 0);
    housekeeping_leave(u);
    loop_close(l);
}

TEST_WITH(housekeeping_goes_on_with_another_loop_when_a_loop_leaves, setup, NULL)
{
    const uint64_t late = clock_deadline_ms(50);
    struct loop *l[2];
    struct housekeeping *u[2] = { join(&l[0]), join(&l[1]) };

    housekeeping_at(job, late); /* on the loop that joined last */
    housekeeping_leave(u[1]);
    loop_close(l[1]);
    assert_int_equal(wait_for_run(), 0);
    assert_true(clock_now_ns() >= late);
    housekeeping_leave(u[0]);
    loop_close(l[0]);
}
