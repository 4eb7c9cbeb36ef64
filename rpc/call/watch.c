/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/watch.h"
#include "rpc/call/calls.h"

void watch_connect(struct tenrec_worker *w, enum watcher i, const struct call_watch *watch)
{
    w->calls->watch[i] = watch;
}

void watch_turn(struct tenrec_worker *w, enum watcher i, bool on)
{
    if (on)
        atomic_fetch_or(&w->calls->watched, 1u << i);
    else
        atomic_fetch_and(&w->calls->watched, ~(1u << i));
}

static uint32_t watch_bits(const struct tenrec_worker *w)
{
    return atomic_load_explicit(&w->calls->watched, memory_order_relaxed);
}

/* Calls `fn` of each watcher in `bits`. */
#define WATCH_EACH(w, bits, fn, ...)                                                               \
    do {                                                                                           \
        for (uint32_t left = (bits); left; left &= left - 1)                                       \
            (w)->calls->watch[__builtin_ctz(left)]->fn(__VA_ARGS__);                               \
    } while (0)

void watch_begun(struct tenrec_worker *w, struct tenrec_future *f, const char *function)
{
    if (!f->call.begun_ns)
        f->call.begun_ns = clock_fast_ns();
    if (watch_has(w, WATCH_DURATIONS))
        w->calls->watch[WATCH_DURATIONS]->begun(w, f, function);
}

void watch_ended(struct tenrec_worker *w, const struct tenrec_future *f, tenrec_status status)
{
    const uint64_t now_ns = clock_fast_ns();

    WATCH_EACH(w, watch_bits(w), ended, w, f, status, now_ns);
}

void watch_serving(struct tenrec_call *c, struct tenrec_worker *w, uint64_t now_ns)
{
    if (!watch_has(w, WATCH_RECORDER))
        return;
    w->calls->watch[WATCH_RECORDER]->serving(c, now_ns ? now_ns : clock_fast_ns());
}

void watch_served(const struct tenrec_call *c, struct tenrec_worker *w, bool recorded,
                  tenrec_status status)
{
    const uint32_t recorder = recorded ? 1u << WATCH_RECORDER : 0;
    const uint64_t now_ns = clock_fast_ns();

    WATCH_EACH(w, watch_bits(w) | recorder, served, c, status, now_ns);
}

void watch_note(struct tenrec_worker *w, enum watch_event what, tenrec_peer peer, int64_t id,
                tenrec_status status, const char *text)
{
    const struct call_watch *recorder = w->calls->watch[WATCH_RECORDER];

    if (recorder) /* not in a test of a room alone */
        recorder->noted(w, what, peer, id, status, text);
}
