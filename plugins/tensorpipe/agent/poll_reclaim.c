/* SPDX-License-Identifier: Apache-2.0 */
/* poll_reclaim.c - a timer that gives connections back to the loop thread when
 * their reading callers have left (pipe_poll.c). */
#include "agent/agent.h"
#include "pipe/pipe_role.h"

#define RECLAIM_PERIOD_NS 60000000u

static void poll_reclaim_one(struct pipe *p, void *arg)
{
    bool *masked = arg;

    if (role_wake_loop(p))
        *masked = true;
}

static void poll_reclaim_fire(struct reactor_timer *t)
{
    struct agent *a = CONTAINER(t, struct agent, poll_reclaim_timer);
    bool masked = false;

    pipe_table_each(&a->pipes, poll_reclaim_one, &masked);
    if (masked)
        reactor_arm(&a->ep.reactor, t, clock_now_ns() + RECLAIM_PERIOD_NS);
}

static void poll_reclaim_run(struct reactor_task *t)
{
    struct agent *a = CONTAINER(t, struct agent, ep.reclaim);

    if (!a->poll_reclaim_timer.prev && atomic_load(&a->ep.state) == AGENT_STARTED)
        reactor_arm(&a->ep.reactor, &a->poll_reclaim_timer, clock_now_ns() + RECLAIM_PERIOD_NS);
}

void poll_reclaim_init(struct agent *a)
{
    a->ep.reclaim.run = poll_reclaim_run;
    a->poll_reclaim_timer.fire = poll_reclaim_fire;
}
