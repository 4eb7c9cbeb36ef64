/* SPDX-License-Identifier: Apache-2.0 */
/* agent_spin.c - when the loop thread busy-polls. */
#include "agent/agent.h"
#include "pipe/pipe.h"

#include <sched.h>

#define LOOK_NS 40000u         /* so often the epoll set and the timers have their turn */
#define CLOCK_EVERY 16         /* rounds between two readings of the clock */
#define OTHERS_EVERY 8         /* rounds in which not only the last active pipe is read */
#define BUSY_YIELD_NS 5000000u /* busy: nap while a caller of this agent spins */
/* A guest runs the messages that it reads: the next one arrives after about the time of a run here
 * and at the peer, and an idle processor takes 50 us to wake. */
#define GUEST_SPIN_NS 300000u

static unsigned hot_index(const struct agent *a, const struct pipe *p)
{
    unsigned i = 0;

    while (i < a->n_hot && a->hot[i] != p)
        i++;
    return i;
}

/* A spinning loop reads incoming pipes without events. Outgoing pipes are left alone: callers
 * decide there. */
static void hot_mask_events(struct pipe *p, bool masked)
{
    if (!p->outgoing && pipe_state(p) == PIPE_ESTABLISHED)
        pipe_mask_events(p, masked);
}

static void hot_mask_all(struct agent *a, bool masked)
{
    if (a->hot_masked == masked)
        return;
    a->hot_masked = masked;
    for (unsigned i = 0; i < a->n_hot; i++)
        hot_mask_events(a->hot[i], masked);
}

void agent_hot(struct endpoint *ep, struct pipe *p)
{
    struct agent *a = agent_of(ep);
    unsigned i;

    a->active = true;
    if (a->ep.progress == PROGRESS_SLEEP || (a->n_hot && a->hot[0] == p))
        return;
    i = hot_index(a, p);
    if (i == a->n_hot) {
        if (a->n_hot == AGENT_HOT)
            agent_cool(a, a->hot[--i]);
        pipe_ref(p);
        a->n_hot++;
        if (a->hot_masked)
            hot_mask_events(p, true);
    }
    for (; i > 0; i--)
        a->hot[i] = a->hot[i - 1];
    a->hot[0] = p;
}

void agent_cool(struct agent *a, struct pipe *p)
{
    unsigned i = hot_index(a, p);

    if (i == a->n_hot)
        return;
    for (a->n_hot--; i < a->n_hot; i++)
        a->hot[i] = a->hot[i + 1];
    if (a->hot_masked)
        hot_mask_events(p, false);
    pipe_unref(p);
}

static bool may_read(struct pipe *p)
{
    /* A request that the host does not accept stays in the socket until the host does. */
    return pipe_state(p) == PIPE_ESTABLISHED && (p->outgoing ? role_free(p) : !p->read.unparsed);
}

/* Returns true if bytes were read. */
static bool try_pipe(struct pipe *p)
{
    enum read_result r;

    if (!may_read(p))
        return false;
    if (!p->outgoing)
        return pipe_read(p, READ_NOW) == READ_SOME;
    if (!role_try(p))
        return false;
    r = pipe_read(p, READ_NOW);
    role_leave(p);
    return r == READ_SOME;
}

/* There is none when callers read all that was active lately. */
static bool any_to_read(struct agent *a)
{
    for (unsigned i = 0; i < a->n_hot; i++)
        if (may_read(a->hot[i]))
            return true;
    return false;
}

/* Reads the hot pipes, the last active one more often. Returns true if bytes arrived. */
static bool one_round(struct agent *a, unsigned round)
{
    unsigned n = round % OTHERS_EVERY == 0 ? a->n_hot : 1;
    bool came = false;

    for (unsigned i = 0; i < n && i < a->n_hot; i++) {
        if (try_pipe(a->hot[i])) {
            came = true;
            if (i)
                agent_hot(&a->ep, a->hot[i]);
        }
    }
    return came;
}

static bool spin_disturbed(struct agent *a)
{
    return atomic_load_explicit(&a->ep.reactor.waiting, memory_order_relaxed) ||
           atomic_load_explicit(&a->ep.reactor.stop, memory_order_relaxed) ||
           reactor_is_over(&a->ep.reactor);
}

/* Some spin now, or did a moment ago. */
static bool callers_spin(struct agent *a)
{
    unsigned polls = atomic_load_explicit(&a->ep.polls, memory_order_relaxed), seen = a->polls_seen;

    a->polls_seen = polls;
    return polls != seen || atomic_load_explicit(&a->ep.spinners, memory_order_relaxed) > 0;
}

/* Is a tensor or a large payload on its way? */
static bool awaits_rest(const struct agent *a)
{
    for (unsigned i = 0; i < a->n_hot; i++)
        if (!a->hot[i]->outgoing && (a->hot[i]->read.front.n_lead || a->hot[i]->read.waiting))
            return true;
    return false;
}

/* A peer that stops in the middle of a message has no processor: ours may be what it needs. */
static bool stands_still(const struct agent *a, uint64_t now)
{
    return a->last_ns && now - a->last_ns >= SPIN_NS && awaits_rest(a);
}

static uint64_t spin_busy(struct agent *a)
{
    uint64_t now = clock_now_ns(), until = now + LOOK_NS;
    bool came = false;

    /* A spinning caller on a machine with few CPUs would lose its CPU to this thread. Naps end with
     * events, and after BUSY_YIELD_NS to poll again. */
    if (callers_spin(a) && !a->ep.many_cpus) {
        hot_mask_all(a, false);
        return BUSY_YIELD_NS;
    }
    /* An event has brought bytes of some pipe. */
    if (a->active)
        a->last_ns = now;
    a->active = false;
    if (stands_still(a, now) && !(came = one_round(a, 0))) {
        hot_mask_all(a, false);
        return REACTOR_FOREVER;
    }
    hot_mask_all(a, true);
    for (unsigned round = 1; now < until && !spin_disturbed(a); round++) {
        came |= one_round(a, round);
        if (round % CLOCK_EVERY == 0)
            now = clock_now_ns();
    }
    if (came || !a->last_ns)
        a->last_ns = now;
    return 0;
}

/* Spins until nothing has arrived for SPIN_NS or, for a guest, GUEST_SPIN_NS, polling other sources
 * in between. A guest spins long enough to starve other threads, such as a thread that is about to
 * read the answer. */
static uint64_t spin_adaptive(struct agent *a)
{
    bool came = false, guest = reactor_has_guest(&a->ep.reactor);
    uint64_t now, until, limit = guest ? GUEST_SPIN_NS : SPIN_NS;

    if (a->ep.one_cpu || (callers_spin(a) && !a->ep.many_cpus))
        return REACTOR_FOREVER;
    now = clock_now_ns();
    if (a->active) {
        a->active = false;
        if (!a->last_ns && a->spin.skip) {
            a->spin.skip--;
            return REACTOR_FOREVER;
        }
        if (!a->last_ns)
            a->paid_off = false;
        a->last_ns = now;
    }
    if (!a->last_ns)
        return REACTOR_FOREVER;
    until = now + LOOK_NS;
    for (unsigned round = 1; now < until && !spin_disturbed(a); round++) {
        came |= one_round(a, round);
        if (round % CLOCK_EVERY != 0)
            continue;
        if (guest && !came)
            sched_yield();
        now = clock_now_ns();
        if (came) {
            a->paid_off = true;
            a->last_ns = now;
            came = false;
        } else if (now - a->last_ns >= limit) {
            break;
        }
    }
    if (came) {
        a->paid_off = true;
        a->last_ns = now;
    }
    a->active = false;
    if (now - a->last_ns < limit)
        return 0;
    spin_ended(&a->spin, a->paid_off);
    a->last_ns = 0;
    return REACTOR_FOREVER;
}

uint64_t agent_spin(void *arg)
{
    struct agent *a = arg;

    if (any_to_read(a))
        return a->ep.progress == PROGRESS_BUSY ? spin_busy(a) : spin_adaptive(a);
    hot_mask_all(a, false);
    a->last_ns = 0;
    return REACTOR_FOREVER;
}
