/* SPDX-License-Identifier: Apache-2.0 */
#include "call/watch.h"

void watch_connect(struct tenrec_worker *w, enum watcher i, const struct call_watch *watch)
{
    w->watch[i] = watch;
}

void watch_turn(struct tenrec_worker *w, enum watcher i, bool on)
{
    if (on)
        atomic_fetch_or(&w->watched, 1u << i);
    else
        atomic_fetch_and(&w->watched, ~(1u << i));
}

/* Calls `fn` of each watcher that is on. */
#define WATCH_EACH(w, fn, ...)                                                                     \
    do {                                                                                           \
        const uint32_t on = atomic_load_explicit(&(w)->watched, memory_order_relaxed);             \
        for (unsigned i = 0; i < WATCHERS; i++)                                                    \
            if (on & (1u << i))                                                                    \
                (w)->watch[i]->fn(__VA_ARGS__);                                                    \
    } while (0)

void watch_begun(struct tenrec_worker *w, struct tenrec_future *f, const char *function)
{
    f->call.begun_ns = clock_fast_ns();
    WATCH_EACH(w, begun, w, f, function);
}

void watch_ended(struct tenrec_worker *w, const struct tenrec_future *f, const tenrec_error *why)
{
    const uint64_t now_ns = clock_fast_ns();

    WATCH_EACH(w, ended, w, f, why, now_ns);
}

void watch_served(const struct tenrec_call *c, struct tenrec_worker *w, const tenrec_error *why)
{
    const uint64_t now_ns = clock_fast_ns();

    WATCH_EACH(w, served, c, why, now_ns);
}
