/* SPDX-License-Identifier: Apache-2.0 */
/* agent_ops.h - the operations of an agent that have files of their own, and
 * what all operations use. */
#ifndef TENSORPIPE_AGENT_OPS_H
#define TENSORPIPE_AGENT_OPS_H

#include "agent/agent.h"

static inline bool agent_runs(struct agent *a)
{
    return atomic_load(&a->ep.state) == AGENT_STARTED;
}

/* Runs fn (or nothing) on the loop thread, after all that was posted before,
 * and waits. */
void agent_call_loop(struct agent *a, void (*fn)(struct agent *a));

/* agent_lead.c */
tenrec_status agent_lead(struct tenrec_agent *self, const struct tenrec_wait *wait);
bool agent_maps(struct tenrec_agent *self, tenrec_peer id, struct tenrec_route route);

/* agent_pipes.c */
void agent_received(struct tenrec_agent *self, uint64_t *received, uint32_t n);

/* agent_stop.c */
tenrec_status agent_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err);
void agent_shutdown(struct tenrec_agent *self);
void agent_destroy(struct tenrec_agent *self);

#endif
