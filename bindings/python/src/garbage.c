/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#include <stdatomic.h>
#include <stdbool.h>

static _Atomic(struct garbage *) garbage_first;
static atomic_bool garbage_stopped;

static int garbage_pending(void *arg)
{
    (void)arg;
    garbage_drain();
    return 0;
}

void garbage_put(struct garbage *g)
{
    struct garbage *first = atomic_load(&garbage_first);

    do
        g->next = first;
    while (!atomic_compare_exchange_weak(&garbage_first, &first, g));
    /* The main thread drains soon, and any other with its next use of Tenrec: the call fails
     * while many are pending, and the first of a queue has been announced. */
    if (!first && !atomic_load(&garbage_stopped))
        Py_AddPendingCall(garbage_pending, NULL);
}

void garbage_drain(void)
{
    struct garbage *g, *next;

    if (!atomic_load_explicit(&garbage_first, memory_order_relaxed) ||
        atomic_load(&garbage_stopped))
        return;
    for (g = atomic_exchange(&garbage_first, NULL); g; g = next) {
        next = g->next;
        g->release(g);
    }
}

void garbage_stop(void)
{
    atomic_store(&garbage_stopped, true);
}
