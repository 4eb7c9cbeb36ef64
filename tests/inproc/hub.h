/* SPDX-License-Identifier: Apache-2.0 */
/* hub.h - the agents of this process, and the messages between them.
 *
 * One lock guards all of it: this is a backend for tests, and simple first.
 * A connection goes from the agent that made it (the client) to another; the
 * answers to what came over it go back over it, or nowhere. */
#ifndef INPROC_HUB_H
#define INPROC_HUB_H

#include <pthread.h>
#include <tenrec/plugin.h>

/* BROKEN until the loss is reported to the user; no send goes there before. */
enum { LINK_NONE, LINK_UP, LINK_BROKEN, LINK_TELLING };

/* An agent's state of one peer. */
struct peer {
    tenrec_peer id;
    int state;           /* of the connection from here to there */
    const char *why;     /* it broke */
    uint64_t generation; /* of that connection */
    const char *gone;    /* why the connection from there to here broke, until reported */
};

/* A message on its way. */
struct envelope {
    struct envelope *next;
    struct inproc *sender;
    tenrec_peer from;
    struct tenrec_route route; /* it came over this connection */
    struct tenrec_msg *msg;
    struct tenrec_done done;
};

struct inproc {
    struct tenrec_agent *agent;
    struct inproc *next; /* in the hub */
    tenrec_peer me;
    const char *group;
    uint32_t limit;     /* of the queue */
    uint32_t n_devices; /* that it pretends to have */
    char address[160];
    pthread_t thread;

    /* Guarded by the hub's lock, as all above that changes. */
    struct peer *peer;
    uint32_t n_peers;
    struct envelope *first, **last;
    uint32_t queued;  /* messages in the list above */
    uint64_t pending; /* own sends without a completion */
    bool entered;     /* others find it, from the announcement of its address */
    bool serving;     /* between start and shutdown */
    bool paused;      /* the user takes no requests */
    uint64_t sent, received;
};

/* The lock, and one condition for all waiters. */
extern pthread_mutex_t hub_lock;
extern pthread_cond_t hub_moved;

/* All below with the lock held. */

/* errors: EEXIST */
tenrec_status hub_enter(struct inproc *a, tenrec_error *err);
void hub_leave(struct inproc *a);
struct inproc *hub_find(const char *group, tenrec_peer id);
/* All that are there, in a list. */
struct inproc *hub_agents(void);

struct peer *hub_peer(struct inproc *a, tenrec_peer id);
/* ENOMEM */
tenrec_status hub_peer_add(struct inproc *a, tenrec_peer id);
void hub_peer_remove(struct inproc *a, tenrec_peer id);
/* Connects when that is not done; the generation. */
uint64_t hub_connect(struct peer *p);
/* Breaks the connection of `a` to `id`, if there is one: the threads of both
 * will tell. */
void hub_break(struct inproc *a, tenrec_peer id, const char *why);

void hub_push(struct inproc *to, struct envelope *e);
/* The next one that `a` may have: while it is paused no request. */
struct envelope *hub_pop(struct inproc *a, bool paused);
/* Takes what `from` (NULL: anybody) has on its way to `to` out of the queue and
 * puts it at the end of a list; where that ends now. */
struct envelope **hub_recall(struct inproc *to, const struct inproc *from, struct envelope **end);

/* Waits for something to move, until the deadline (0: none). */
bool hub_wait(uint64_t deadline_ns);

#endif
