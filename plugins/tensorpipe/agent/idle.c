/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - closes outgoing pipes that have carried nothing for idle_timeout (pipe_idle.h). */
#include "agent/agent.h"
#include "pipe/pipe.h"

#include <stdlib.h>

/* The peer understands it, and a later pipe serves as well: tensors of devices, and memory that one
 * side maps, belong to the pipe over which they came, and the end of a pipe to a linked member is
 * that of the link. */
static bool idle_may_end(const struct pipe *p)
{
    return p->outgoing && (p->terms.capabilities & IDENTITY_PARTS) && !p->devices.role &&
           (p->terms.transport->remote || !pipe_has_channel(p)) && p->to->rank == p->to->id;
}

/* Returns true once the pipe has rested for so long. */
static bool idle_has_rested(struct pipe *p)
{
    const uint64_t limit_ns = p->ep->options->idle_timeout_ms * 1000000u, now = clock_now_ns();
    const uint64_t moves = pipe_moves(p);

    if (moves != p->idle.moves || !p->idle.since_ns) {
        p->idle.moves = moves;
        p->idle.since_ns = now;
    }
    if (now - p->idle.since_ns < limit_ns)
        return false;
    if (!TENREC_HAS(p->ep->host, needs) || p->ep->host->needs(p->ep->self, p->to->id)) {
        p->idle.since_ns = now; /* asked again after as long */
        return false;
    }
    return true;
}

static void idle_look(struct pipe *p)
{
    if (!p->idle.out && idle_has_rested(p) && pipe_is_quiet(p)) {
        p->idle.out = true;
        peer_forget(p->to, p);
    }
    if (p->idle.out && peer_has_left(p->to, p) && pipe_is_quiet(p))
        pipe_ask_to_part(p);
}

static void idle_fire(struct reactor_timer *t)
{
    struct agent *a = CONTAINER(t, struct agent, idle_timer);
    struct pipe **all = pipe_table_all(&a->pipes);
    bool any = !all; /* out of memory: later */

    for (size_t i = 0; all && all[i]; i++) {
        struct pipe *p = all[i];

        any = any || p->outgoing;
        if (pipe_state(p) == PIPE_ESTABLISHED && idle_may_end(p) && role_try(p)) {
            idle_look(p);
            role_leave(p);
        }
        pipe_unref(p);
    }
    free(all);
    if (any)
        idle_watch(a);
}

void idle_watch(struct agent *a)
{
    const uint64_t limit_ms = a->ep.options->idle_timeout_ms;

    a->idle_timer.fire = idle_fire;
    if (limit_ms && limit_ms != TENREC_FOREVER && !a->idle_timer.prev)
        reactor_arm(&a->ep.reactor, &a->idle_timer, clock_now_ns() + limit_ms * 250000u);
}
