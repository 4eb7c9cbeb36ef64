/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/stall.h"

#include <pthread.h>
#include <stddef.h>

#define USED_NS (STALL_NS / 16) /* less is that of a lock that is waited for in vain */

static uint64_t stall_clock(const struct stall_thread *t)
{
    struct timespec used = { 0, 0 };

    clock_gettime(t->clock, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void stall_add(struct stalls *s, struct stall_thread *t)
{
    *t = (struct stall_thread){ .next = s->first, .prev = &s->first };
    if (pthread_getcpuclockid(pthread_self(), &t->clock) != 0)
        t->clock = CLOCK_MONOTONIC; /* never stalled */
    if (t->next)
        t->next->prev = &t->next;
    s->first = t;
}

void stall_remove(struct stalls *s, struct stall_thread *t)
{
    stall_set(s, t, false);
    *t->prev = t->next;
    if (t->next)
        t->next->prev = t->prev;
}

void stall_set(struct stalls *s, struct stall_thread *t, bool runs)
{
    s->n -= t->stalled;
    t->stalled = false;
    t->runs = runs;
    t->used_ns = 0;
}

void stall_mark(struct stalls *s)
{
    for (struct stall_thread *t = s->first; t; t = t->next)
        if (t->runs)
            t->used_ns = stall_clock(t);
}

/* Returns true if `t` has begun its task since stall_mark, or used CPU. */
static bool stall_is_active(const struct stall_thread *t)
{
    return t->used_ns == 0 || stall_clock(t) - t->used_ns > USED_NS;
}

void stall_find(struct stalls *s, unsigned max)
{
    bool active = false;

    for (struct stall_thread *t = s->first; t; t = t->next)
        if (t->runs && stall_is_active(t)) {
            stall_set(s, t, true);
            active = true;
        }
    for (struct stall_thread *t = s->first; t && !active; t = t->next)
        if (t->runs && !t->stalled && s->n < max) {
            t->stalled = true;
            s->n++;
        }
}
