/* SPDX-License-Identifier: Apache-2.0 */
/* chain_layer.h - an agent in its chain, built by chain.c and used by host.c. */
#ifndef TENREC_BACKEND_CHAIN_LAYER_H
#define TENREC_BACKEND_CHAIN_LAYER_H

#include "core/backend/agent_timer.h"
#include "core/backend/backend.h"
#include "core/backend/chain_members.h"

typedef void deliver_fn(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg);

/* Options of an agent that were changed while it ran. */
struct link_options {
    void *opts; /* owns */
    struct link_options *next;
};

struct link {
    struct tenrec_agent agent; /* first: all that the plugin sees */

    /* The next agents that have the op, resolved once: the fast path. */
    chain_send_fn *inner_send;
    struct tenrec_agent *inner_sender;
    deliver_fn *outer_deliver; /* NULL: the user is next */
    struct tenrec_agent *outer_deliverer;

    struct chain *chain;
    const char *name; /* of the entry */
    struct plugin *backend;
    struct link_options *changed; /* the last first; owns */
    struct agent_timers_owner after;
    bool started;
    char part[TENREC_NAME_MAX + 1 + 64]; /* "worker0/tensorpipe", for the log */
};

enum chain_state { CHAIN_NEW, CHAIN_UP, CHAIN_STOPPING, CHAIN_STOPPED };

struct chain {
    struct chain_port port;
    struct chain_user user;
    _Atomic(enum chain_state) state;
    chain_send_fn *send; /* those of the port while the chain runs */
    chain_poll_fn *poll;

    struct tenrec_host host; /* of all agents */
    struct chain_identity id;
    const char *address; /* of the agents; borrowed from them */
    struct chain_members members;
    struct agent_timers after;
    pthread_mutex_t life;  /* start, shutdown and change of options, one at a time */
    pthread_mutex_t group; /* the same of joins, leaves and changes of options; inside of life */
    size_t n;
    struct link link[];
};

static inline struct link *link_of(struct tenrec_agent *agent)
{
    return (struct link *)agent;
}

/* The extension of the agent's operations; NULL if it has none of that kind. */
const struct tenrec_extension *link_extension(const struct link *l, uint32_t kind, uint32_t size);

/* The services of every chain. */
extern const struct tenrec_host chain_host;

#endif
