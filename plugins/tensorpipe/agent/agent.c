/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - a tensorpipe agent, as the core sees it.
 *
 * Threads. An agent has one loop thread, from start to shutdown. It accepts, connects, shakes
 * hands, keeps time, reads incoming pipes and writes what a socket did not take at once; at rest it
 * sleeps in epoll_wait without a timeout. Data sockets are not read through a general event loop,
 * because the thread that needs the data decides how long to spin for them:
 *
 *     send        writes on the caller's thread when nothing is queued before
 *     poll        the caller reads its own answer (pipe_poll.c)
 *     lead        the caller is the loop thread for a while (leader_follower.c)
 *     the rest    is read by the loop thread, which delivers inline
 *
 * Any of these threads calls `done` and deliver_outer, without a lock held. Messages sent during a
 * delivery are gathered and written at its end (struct batch in pipe.h).
 *
 * Spinning (agent_spin.c): `sleep` never, `adaptive` for at most SPIN_NS and only while that finds
 * something, `busy` always, but SPIN_NS over a message that stalls, and one thread per agent at a
 * time unless there are CPUs to spare. */
#include "agent/agent.h"
#include "pipe/life/pipe_life.h"
#include "transport/tcp/transport_uv.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- operations ---- */

static const char *op_address(struct tenrec_agent *self)
{
    struct agent *a = self->impl;

    return a->address;
}

static tenrec_status op_start(struct tenrec_agent *self, const struct tenrec_member *member,
                              uint32_t n, tenrec_error *err)
{
    struct agent *a = self->impl;
    tenrec_status st = peer_table_start(&a->ep, member, n, err);

    descriptors_reserve(a, n);
    if (!st)
        st = listener_start(&a->listener, err);
    if (st)
        return st;
    atomic_store(&a->ep.state, AGENT_STARTED);
    st = reactor_start(&a->ep.reactor, err);
    if (st)
        atomic_store(&a->ep.state, AGENT_MADE);
    return st;
}

/* It may say nothing before it leaves, or dies. */
static void recognise_one(struct pipe *p, void *arg)
{
    const struct tenrec_member *member = arg;

    if (atomic_load(&p->caller.claims) && p->caller.id == member->id)
        pipe_post(p, &p->read.task);
}

static void op_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    struct agent *a = self->impl;
    struct tenrec_member joined = *member;
    tenrec_error err;

    if (agent_add_member(a, member, &err))
        agent_log(a, TENREC_LOG_ERROR, "%s", err.text);
    pipe_table_enter(&a->ep);
    if (agent_runs(a))
        pipe_table_each(&a->pipes, recognise_one, &joined);
    pipe_table_leave(&a->ep);
    descriptors_reserve(a, (unsigned)atomic_load(&a->ep.peers_end));
}

/* So that a removed member that still lives hears of it. A caller of another library waits for
 * the answer to its leaving, and closes the pipe itself. */
static void fail_pipes_from(struct agent *a, const struct peer *peer)
{
    struct pipe **v = pipe_table_all(&a->pipes);

    for (size_t i = 0; v && v[i]; i++) {
        if (atomic_load(&v[i]->caller.member) == peer && !v[i]->caller.named)
            pipe_failf(v[i], TENREC_EPEER_LOST, 0, "the caller left the group");
        pipe_unref(v[i]);
    }
    free(v);
}

static void op_member_left(struct tenrec_agent *self, tenrec_peer id)
{
    struct agent *a = self->impl;
    struct peer *peer = peer_find(&a->ep, id);

    if (!peer)
        return;
    pipe_table_enter(&a->ep);
    peer_retire(&a->ep, peer, "it left the group");
    fail_pipes_from(a, peer);
    pipe_table_leave(&a->ep);
}

static void resume_one(struct pipe *p, void *arg)
{
    (void)arg;
    if (atomic_exchange(&p->read.paused, false))
        pipe_post(p, &p->read.task);
}

static void op_resume(struct tenrec_agent *self)
{
    struct agent *a = self->impl;

    pipe_table_enter(&a->ep);
    if (agent_runs(a))
        pipe_table_each(&a->pipes, resume_one, NULL);
    pipe_table_leave(&a->ep);
}

static tenrec_status op_disconnect(struct tenrec_agent *self, tenrec_peer id, tenrec_error *err)
{
    struct agent *a = self->impl;
    struct peer *peer = peer_find(&a->ep, id);
    struct pipe *p = NULL;
    unsigned side;

    if (peer) {
        side = peer_enter(peer);
        p = agent_runs(a) ? peer_out(peer) : NULL;
        if (p) {
            pipe_failf(p, TENREC_EPEER_LOST, 0, "disconnected on request");
            /* The next send opens a new connection. */
            if (reactor_mine == &a->ep.reactor)
                pipe_teardown(p);
            else
                agent_call_loop(a, NULL);
        }
        peer_leave(&a->ep, peer, side);
    }
    return p ? TENREC_OK
             : tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no connection to worker %d", (int)id);
}

static void op_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct agent *a = self->impl;

    pipe_table_enter(&a->ep);
    agent_debug_info(a, sink, arg);
    pipe_table_leave(&a->ep);
}

/* ---- making one ---- */

static const struct tenrec_traffic agent_traffic = {
    .extension = { TENREC_EXTENSION_TRAFFIC, sizeof agent_traffic, NULL },
    .received = agent_received,
};

static const struct tenrec_agent_ops agent_ops = {
    .size = sizeof(struct tenrec_agent_ops),
    .extensions = &agent_traffic.extension,
    .address = op_address,
    .start = op_start,
    .member_joined = op_member_joined,
    .member_left = op_member_left,
    .send = peer_send,
    .poll = peer_poll,
    .resume = op_resume,
    .disconnect = op_disconnect,
    .drain = agent_drain,
    .shutdown = agent_shutdown,
    .destroy = agent_destroy,
    .debug_info = op_debug_info,
    .devices = agent_devices,
    .use_devices = agent_use_devices,
    .maps = agent_maps,
    .lead = agent_lead,
};

/* Spinning pays off only if the peer runs on another CPU at the same time, which our affinity does
 * not say: one CPU for each process is common. Spinning of several threads needs several CPUs of
 * ours. */
static void count_cpus(struct agent *a)
{
    a->ep.one_cpu = processors_allotted() < 2;
    a->ep.many_cpus = processors_usable() >= 4;
}

/* Every peer can reach TCP, and more peers a ring by its abstract name than by its folder; the
 * handshake finds the other transports. */
static void agent_publish(struct agent *a)
{
    const struct listener_port *port = &a->listener.port[a->listener.n_ports - 1];

    for (unsigned i = 0; i < a->listener.n_ports; i++) {
        const struct transport *t = a->listener.port[i].transport;

        if (t->remote || (port->transport->fallback && !t->fallback))
            port = &a->listener.port[i];
    }
    snprintf(a->address, sizeof a->address, "%s://%s", port->transport->name, port->address);
}

static void make_offer(struct agent *a)
{
    a->ep.capabilities = IDENTITY_ALL_DTYPES | IDENTITY_OWN_MESSAGES | IDENTITY_SHORT_LISTS |
                         IDENTITY_SHARED_STORAGES | IDENTITY_NAMES_TARGETS |
                         IDENTITY_BRIEF_MESSAGES | IDENTITY_DEFERS | IDENTITY_PARTS |
                         (TENREC_HAS(a->ep.host, shared) ? IDENTITY_MAPS : 0);
    for (unsigned i = 0; i < a->listener.n_ports; i++) {
        const struct listener_port *port = &a->listener.port[i];

        a->ep.transports[i] = port->transport;
        a->ep.offered[i] = (struct wire_transport){ port->transport->name, port->domain,
                                                    port->address, port->transport->remote };
    }
    channels_init(&a->channels, a->ep.options, cuda_is_offered(a->ep.options));
    /* Not copied: devices may join it until the agent starts. */
    a->ep.offer = (struct wire_offer){ a->ep.offered, a->channels.offered, a->listener.n_ports,
                                       a->channels.n, NULL };
}

static enum progress progress_of(const char *text)
{
    if (strcmp(text, "busy") == 0)
        return PROGRESS_BUSY;
    return strcmp(text, "sleep") == 0 ? PROGRESS_SLEEP : PROGRESS_ADAPTIVE;
}

tenrec_status agent_new(const struct tenrec_init *in, struct tenrec_agent *self, tenrec_error *err)
{
    struct agent *a = calloc(1, sizeof *a);
    tenrec_status st;

    if (!a)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an agent");
    a->ep.self = self;
    a->ep.host = self->host;
    a->ep.proof = tenrec_proof_service(self->host);
    a->ep.tls = tenrec_tls_service(self->host);
    a->ep.proves = a->ep.proof && a->ep.proof->mode(self) != TENREC_SECURITY_NONE;
    a->ep.options = in->options;
    a->ep.owner = &agent_pipe_owner;
    a->ep.pipes = &a->pipes;
    a->ep.channels = &a->channels;
    a->ep.cuda = &a->cuda;
    a->ep.me = in->me;
    a->ep.incarnation = in->incarnation;
    a->ep.token = TENREC_HAS(in, token) ? in->token : 0;
    a->ep.dynamic = in->world == 0;
    snprintf(a->ep.name, sizeof a->ep.name, "%s", in->name);
    if (TENREC_HAS(in, host_address))
        snprintf(a->host_address, sizeof a->host_address, "%s", in->host_address);
    a->ep.progress = progress_of(a->ep.options->progress);
    count_cpus(a);
    /* Zeroed pages that are never touched cost nothing. */
    a->ep.peers = calloc(ENDPOINT_PEERS, sizeof *a->ep.peers);
    if (!a->ep.peers) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for an agent");
        goto err_agent;
    }
    st = reactor_init(&a->ep.reactor, err);
    if (st)
        goto err_peers;
    a->ep.scope = transport_scope(a->ep.options, a->host_address);
    st = listener_open(&a->listener, a, err);
    if (st)
        goto err_reactor;
    agent_publish(a);
    make_offer(a);
    a->ep.reactor.spin = agent_spin;
    a->ep.reactor.arg = a;
    poll_reclaim_init(a);
    agent_devices_init(a);
    cuda_init(&a->cuda, &a->ep);
    pthread_mutex_init(&a->pipes.lock, NULL);
    pthread_mutex_init(&a->idle_lock, NULL);
    for (int i = 0; i < ENDPOINT_LOCKS; i++)
        pthread_mutex_init(&a->ep.peer_locks[i], NULL);
    clock_cond_init(&a->idle);
    self->ops = &agent_ops;
    self->impl = a;
    return TENREC_OK;

err_reactor:
    reactor_finish(&a->ep.reactor);
err_peers:
    free(a->ep.peers);
err_agent:
    free(a);
    return st;
}
