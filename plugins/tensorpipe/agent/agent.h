/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - one tensorpipe agent: its thread, listener, peers and pipes. */
#ifndef TENSORPIPE_AGENT_H
#define TENSORPIPE_AGENT_H

#include "agent/listener.h"
#include "agent/peer.h"
#include "channel/channels.h"
#include "cuda/link.h"
#include "options.h"
#include "reactor/reactor.h"
#include "transport/shm_watch.h"
#include "wire/brochure.h"
#include "wire/hello.h"
#include "wire/identity.h"
#include "wire/proof.h"

#define AGENT_PEERS 32768 /* ids are torch's int16 */
#define AGENT_HOT 4       /* pipes that the loop thread spins on at most */

struct pipe;

enum progress { PROGRESS_BUSY, PROGRESS_ADAPTIVE, PROGRESS_SLEEP };

/* Whether spinning pays off, learned from whether it did. */
struct spin {
    uint32_t misses;  /* in a row */
    uint32_t skip;    /* waits that do not try at all */
    uint32_t backoff; /* the next value of skip */
};

enum count {
    COUNT_SENDS,
    COUNT_RECEIVES,
    COUNT_BYTES_SENT,
    COUNT_BYTES_RECEIVED,
    COUNT_MESSAGES_SENT,
    COUNT_MESSAGES_RECEIVED,
    COUNTS,
};

struct counters {
    atomic_uint_fast64_t answers_dropped, messages_dropped, messages_skipped;
    atomic_uint_fast64_t pipes_opened, pipes_accepted, pipes_broken, handshakes_failed;
    atomic_uint_fast64_t tensors_pulled, pulls_refused, tensors_shared, tensors_mapped;
    uint64_t gone[COUNTS]; /* of pipes that are gone; under the agent's lock */
};

static inline void agent_count(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

enum agent_state { AGENT_MADE, AGENT_STARTED, AGENT_STOPPING, AGENT_STOPPED };

struct agent {
    struct tenrec_agent *self;
    const struct tenrec_host *host;
    const struct tp_options *options;
    enum progress progress;
    bool one_cpu, many_cpus;
    bool learns_ways; /* of tensors within a host */
    tenrec_peer me;
    atomic_int state;              /* enum agent_state */
    _Atomic(struct peer *) *peers; /* AGENT_PEERS of them, by id */
    atomic_int peers_end;          /* above all ids that were ever in use */
    atomic_ullong descriptors;     /* that were counted for this agent */
    atomic_uint spinners;          /* callers that spin now */
    atomic_uint polls;             /* calls of poll so far, about */

    uint64_t incarnation;
    uint64_t token; /* 0: none, as of a caller that is no member */
    bool dynamic;   /* members may come that are not known yet */
    char name[TENREC_NAME_MAX + 1];
    char address[TRANSPORT_TEXT_MAX + 16];
    char host_address[TRANSPORT_TEXT_MAX]; /* where to listen if nobody says; "": loopback */
    uint64_t capabilities;                 /* enum identity_capability, of ours */
    struct wire_transport transport[TRANSPORTS_MAX]; /* as the listener's ports */
    struct channels channels;
    struct wire_offer offer;

    struct reactor reactor;
    struct listener listener;
    struct shm_watch shm;
    struct cuda cuda;
    struct counters count;
    /* All pipes by slot: a reply route is slot and generation. */
    pthread_mutex_t lock;
    struct pipe **pipe; /* under lock; each owns a reference */
    size_t n_pipe;
    uint64_t generations;

    /* Calls of ops that run now and are not inside of a peer; shutdown waits for
     * the last of both. */
    atomic_uint inside;
    pthread_mutex_t idle_lock;
    pthread_cond_t idle;         /* nobody is inside, or every send was told */
    atomic_uint_fast64_t unsent; /* sends that were not told done yet */
    atomic_uint drainers;

    struct reactor_task quiet_task;
    struct reactor_timer quiet_timer; /* looks at pipes that pollers left */
    struct reactor_timer alive_timer; /* looks whether hosts answer */

    /* Spinning. At most one thread of an agent does, unless there are CPUs
     * enough: a caller that waits comes first, else the loop thread. */
    unsigned polls_seen;
    struct pipe *hot[AGENT_HOT]; /* loop thread; each owns a reference */
    unsigned n_hot;
    bool active;      /* something was read since the loop last slept */
    bool hot_quiet;   /* busy: data of hot incoming pipes raise no events */
    bool paid_off;    /* adaptive: this spin has found something */
    uint64_t last_ns; /* adaptive: when it last did; 0 when not spinning */
    struct spin spin;
};

#define agent_log(a, level, ...)                                                                   \
    do {                                                                                           \
        if ((a)->host->log_enabled((a)->self, level))                                              \
            (a)->host->log((a)->self, level, __VA_ARGS__);                                         \
    } while (0)

/* plugin.c fills *in's options. errors: ECONFIG, EOS, ENOMEM */
tenrec_status agent_new(const struct tenrec_init *in, struct tenrec_agent *self, tenrec_error *err);

/* Takes a reference; gives the pipe an id and a generation. ENOMEM */
tenrec_status agent_add_pipe(struct agent *a, struct pipe *p);
/* Gives it back, if it was there. */
void agent_remove_pipe(struct agent *a, struct pipe *p);
/* A new reference to the pipe of that route; NULL when it is gone. */
struct pipe *agent_find_pipe(struct agent *a, struct tenrec_route route);

/* Calls fn for every pipe, under the agent's lock. */
void agent_each_pipe(struct agent *a, void (*fn)(struct pipe *p, void *arg), void *arg);
/* References to all pipes; NULL at the end. NULL: out of memory. */
struct pipe **agent_all_pipes(struct agent *a);
/* What the data path of `p` did, on top of `sum`. */
void agent_add_counts(struct pipe *p, uint64_t sum[COUNTS]);
void agent_debug_info(struct agent *a, tenrec_sink_fn *sink, void *arg);

/* Replaces who had the id. errors: EINVAL, ENOMEM */
tenrec_status agent_add_member(struct agent *a, const struct tenrec_member *m, tenrec_error *err);
/* NULL when no member has that id. */
static inline struct peer *agent_peer(struct agent *a, tenrec_peer id)
{
    return id >= 0 && id < AGENT_PEERS ? atomic_load_explicit(&a->peers[id], memory_order_acquire)
                                       : NULL;
}

/* Writes what this agent tells `peer` of itself: with a proof if both have tokens. NULL stands
 * for a stranger. */
void agent_write_identity(const struct agent *a, const struct peer *peer, enum proof_role role,
                          char ret[IDENTITY_MAX]);
/* Returns true if `shown` is what only `peer` can show to us; false also if one of us has no
 * token. */
bool agent_is_shown(const struct agent *a, const struct peer *peer, enum proof_role role,
                    uint64_t shown);
/* Returns true if `peer` and this agent can show each other who they are. */
static inline bool agent_shares_tokens(const struct agent *a, const struct peer *peer)
{
    return a->token && peer->token;
}

/* Returns true if the core places tensors that share a storage (since ABI 0.7). */
static inline bool agent_shares_storages(const struct agent *a)
{
    return a->host->abi_major > 0 || a->host->abi_minor >= 7;
}

/* Who waits for the agent to come to rest looks again: sends were told, or
 * nobody is inside any more. */
void agent_told(struct agent *a);

/* The loop has read from `p`: spin there first. */
void agent_hot(struct agent *a, struct pipe *p);
void agent_cool(struct agent *a, struct pipe *p);
uint64_t agent_spin(void *arg);
bool agent_rests(void *arg);

/* agent_quiet.c: a poller took the pipe's data events away from the loop. */
void agent_quieted(struct agent *a);
void agent_quiet_init(struct agent *a);
/* agent_alive.c: from now on there are TCP connections to look at. Loop thread. */
void agent_look_alive(struct agent *a);

/* May spin now, and how it went. */
bool spin_wanted(struct spin *s);
void spin_ended(struct spin *s, bool paid_off);
#define SPIN_NS 50000u /* longest spin of progress: adaptive, but for a guest */

#endif
