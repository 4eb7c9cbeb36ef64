/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/memory.h"

#include "core/base/clock.h"
#include "core/base/loop.h"

#include <malloc.h>
#include <stdatomic.h>

#define IDLE_NS (HEAP_IDLE_MS * UINT64_C(1000000))

static _Atomic uint64_t reports; /* since the start of the process */
static _Atomic uint64_t seen;    /* `reports` at the last run of heap_trim */

void heap_freed(void)
{
    atomic_fetch_add_explicit(&reports, 1, memory_order_relaxed);
    housekeeping_at(heap_trim, clock_now_ns() + IDLE_NS);
}

uint64_t heap_trim(uint64_t now_ns)
{
    const uint64_t now_reported = atomic_load(&reports);

    if (atomic_exchange(&seen, now_reported) != now_reported)
        return now_ns + IDLE_NS;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return CLOCK_NEVER;
}
