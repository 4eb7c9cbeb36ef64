/* SPDX-License-Identifier: Apache-2.0 */
/* The heap: its free pages are returned to the system once a burst is over. */
#include "core/base/memory.h"

#include "../testing.h"
#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "core/base/loop.h"

#include <stdatomic.h>

enum { BURST = 20000 };

static _Atomic int trims;

int __real_malloc_trim(size_t pad);
int __wrap_malloc_trim(size_t pad);

int __wrap_malloc_trim(size_t pad)
{
    atomic_fetch_add(&trims, 1);
    return __real_malloc_trim(pad);
}

static void reset(void)
{
    atomic_store(&trims, 0);
}

TEST_WITH(heap_is_trimmed_when_no_report_came_since_the_last_run, reset, NULL)
{
    const uint64_t now = clock_now_ns();

    heap_freed();
    assert_true(heap_trim(now) > now);
    heap_freed();
    assert_true(heap_trim(now) > now);
    assert_int_equal(atomic_load(&trims), 0);
    assert_true(heap_trim(now) == CLOCK_NEVER);
    assert_int_equal(atomic_load(&trims), 1);
}

/* Makes and releases BURST messages that are queued at the same time. */
static void burst_run(uint64_t payload_len)
{
    struct tenrec_msg **msg = calloc(BURST, sizeof *msg);

    assert_non_null(msg);
    for (size_t i = 0; i < BURST; i++)
        assert_non_null(msg[i] = message_new(payload_len, 0));
    for (size_t i = 0; i < BURST; i++)
        msg[i]->release(msg[i]);
    free(msg);
}

static void trimmed_after_burst_of(uint64_t payload_len)
{
    struct housekeeping *u = NULL;
    struct loop *l = NULL;
    tenrec_error err;

    assert_status(loop_open(&l, &err), &err);
    assert_status(housekeeping_join(l, &u, &err), &err);
    burst_run(payload_len);
    assert_becomes(atomic_load(&trims) > 0);
    housekeeping_leave(u);
    loop_close(l);
}

TEST_WITH(heap_is_trimmed_after_a_burst_of_small_messages, reset, NULL)
{
    trimmed_after_burst_of(0);
}

TEST_WITH(heap_is_trimmed_after_a_burst_of_large_messages, reset, NULL)
{
    trimmed_after_burst_of(4000);
}
