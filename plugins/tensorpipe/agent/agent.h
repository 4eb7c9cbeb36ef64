/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - one tensorpipe agent: its thread, listener, peers and pipes. */
#ifndef TENSORPIPE_AGENT_H
#define TENSORPIPE_AGENT_H

#include "agent/listener.h"
#include "channel/channels.h"
#include "cuda/link/link.h"
#include "endpoint.h"
#include "pipe/life/pipe_table.h"
#include "reactor/reactor.h"

#include <tenrec/agent.h>
#include <tenrec/plugin.h>

#define AGENT_HOT 4 /* pipes that the loop thread spins on at most */

struct pipe;

struct agent {
    struct endpoint ep;
    atomic_ullong descriptors; /* that were counted for this agent */

    char address[TRANSPORT_TEXT_MAX + 16];
    char host_address[TRANSPORT_TEXT_MAX]; /* where to listen by default; "": loopback */
    struct channels channels;
    struct listener listener;
    struct cuda cuda;
    struct reactor_task offer_task; /* offers devices to peers */
    struct pipe_table pipes;

    pthread_mutex_t idle_lock;
    pthread_cond_t idle; /* no thread is inside, or every send is complete */

    struct reactor_timer poll_reclaim_timer; /* checks pipes that pollers left */
    struct reactor_timer keepalive_timer;    /* checks whether hosts answer */
    struct reactor_timer idle_timer;         /* closes idle pipes */

    /* Spinning. At most one thread of an agent does, unless there are CPUs enough: a waiting caller
     * has priority over the loop thread. */
    unsigned polls_seen;
    struct pipe *hot[AGENT_HOT]; /* loop thread; each owns a reference */
    unsigned n_hot;
    bool active;      /* something was read since the loop last slept */
    bool hot_masked;  /* busy: data of hot incoming pipes raise no events */
    bool paid_off;    /* adaptive: this spin has found something */
    uint64_t last_ns; /* adaptive: when it last did; 0 when not spinning */
    struct spin spin;
};

/* pipe/life/peer_pipe.c has operations of the agent, which knows the endpoint only. */
_Static_assert(offsetof(struct agent, ep) == 0, "an agent begins with its endpoint");

#define agent_log(a, ...) endpoint_log(&(a)->ep, __VA_ARGS__)

/* plugin.c fills *in's options. errors: ECONFIG, EOS, ENOMEM */
tenrec_status agent_new(const struct tenrec_init *in, struct tenrec_agent *self, tenrec_error *err);

/* agent_pipes.c */
static inline struct agent *agent_of(struct endpoint *ep)
{
    return CONTAINER(ep, struct agent, ep);
}

extern const struct pipe_owner agent_pipe_owner;
void agent_debug_info(struct agent *a, tenrec_sink_fn *sink, void *arg);

/* Replaces the member that had the id. errors: EINVAL, ENOMEM */
tenrec_status agent_add_member(struct agent *a, const struct tenrec_member *m, tenrec_error *err);

/* Wakes threads that wait for the agent to become idle: sends are complete, or no thread is
 * inside. */
void agent_told(struct endpoint *ep);

/* The loop has read from `p`: spin there first. */
void agent_hot(struct endpoint *ep, struct pipe *p);
void agent_cool(struct agent *a, struct pipe *p);
uint64_t agent_spin(void *arg);

/* poll_reclaim.c */
void poll_reclaim_init(struct agent *a);
/* keepalive.c: starts the checks, once the first TCP connection exists. Loop thread. */
void keepalive_watch(struct agent *a);
/* idle.c: the same for idle pipes, once the first outgoing one exists. */
void idle_watch(struct agent *a);

/* agent_devices.c */
tenrec_status agent_devices(struct tenrec_agent *self, const struct tenrec_device_ops **ret,
                            uint32_t *ret_n, tenrec_error *err);
tenrec_status agent_use_devices(struct tenrec_agent *self, const struct tenrec_device *device,
                                uint32_t n, tenrec_error *err);
void agent_devices_init(struct agent *a);

/* descriptors.c: how many file descriptors an agent needs.
 *
 * A peer takes a pipe in each direction. Over rings a pipe has four connections of one
 * Unix socket each (descriptor, reply and the two of a channel) and nothing else: 8 for
 * a peer of this host. Over TCP it has two and the lanes, 6 with one lane, of which a pipe between
 * two Tenrec workers leaves out the reply. */

/* Raises the soft limit of open files to what calls between this agent and `peers` peers need
 * beside all other agents of the process, if it is lower, and as far as the hard limit allows.
 * Any thread. */
void descriptors_reserve(struct agent *a, unsigned peers);

/* The agent needs none any more. The limit stays as it is. */
void descriptors_release(struct agent *a);

/* processors.c: how many threads of this process can run at once. */

/* The processors of this machine, within the quotas of the cgroup of this process (v2) and of those
 * above. At least 1. */
unsigned processors_allotted(void);

/* Those of them that this process may use by its affinity. At least 1. */
unsigned processors_usable(void);

/* The quota of the cgroup `group` ("/a/b") below the folder `mount`, and of those above, rounded up
 * to processors. UINT_MAX: none. */
unsigned processors_quota(const char *mount, const char *group);

/* The operations of an agent that have files of their own, and what all operations use. */

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

/* registry.c: the transports and channels that TensorPipe's peers register, and which of them can
 * be used. A config may name all of them; unusable ones are skipped, and reported with the
 * reason. */

#define REGISTRY_WHY 160

struct registry_entry {
    const char *name;
    bool host; /* for tensors in host memory (channels) */
    /* Whether this build and this machine can; else why not. NULL: always. */
    bool (*viable)(char why[], size_t cap);
};

/* The better ones first; they end with a name of NULL. */
extern const struct registry_entry registry_transports[], registry_channels[];

/* For the choices of options. */
#define REGISTRY_TRANSPORTS "shm|ibv|uv"
#define REGISTRY_CHANNELS "cma|mpt_uv|xth|basic|cuda_xth|cuda_ipc|cuda_gdr|cuda_basic"

bool registry_viable(const struct registry_entry *k, char why[REGISTRY_WHY]);

/* At least one of `list` must be here. errors: ECONFIG */
tenrec_status registry_check(const struct registry_entry *all, const char *what,
                             const struct tenrec_option_list *list, tenrec_error *err);

/* Reports why each entry better than `used` is not used in this process:
 * "not_used.<what>.<name>". */
void registry_tell_unused(const struct registry_entry *all, const char *what, const char *used,
                          const struct tenrec_option_list *list, tenrec_sink_fn *sink, void *arg);

#endif
