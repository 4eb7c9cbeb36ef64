/* agent.c - a tensorpipe agent, as the core sees it.
 *
 * Threads. An agent has one loop thread, from start to shutdown. It accepts,
 * connects, shakes hands, keeps time, reads incoming pipes and writes what a
 * socket did not take at once; at rest it sleeps in epoll_wait without a
 * timeout. Data sockets are not read through a general event loop, because the
 * thread that needs the data decides how long to spin for them:
 *
 *     send        writes on the caller's thread when nothing is queued before
 *     poll        the caller reads its own answer (pipe_poll.c)
 *     the rest    is read by the loop thread, which delivers inline
 *
 * `done` is told and deliver_outer called on whichever of these threads it
 * happens, without a lock held. What is sent during a delivery is gathered and
 * written at its end (struct batch in pipe.h).
 *
 * Spinning (agent_spin.c): `sleep` never, `adaptive` for at most SPIN_NS and
 * only while that finds something, `busy` always, but one thread per agent at
 * a time unless there are CPUs to spare. */
#include "agent/agent.h"
#include "pipe/pipe.h"
#include "transport/transport_uv.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define QUIET_PERIOD_NS 60000000u
#define DRAIN_LOOK_NS 10000000u
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

void agent_conn_tell(struct conn *c, uint32_t events)
{
    if (c->pipe)
        pipe_conn_ready(c->pipe, c, events);
    else
        listener_conn_ready(&c->agent->listener, c);
}

void agent_conn_ready(struct reactor_source *s, uint32_t events)
{
    struct conn *c = CONTAINER(s, struct conn, source);

    if (c->carrier->events)
        events = c->carrier->events(c, events);
    if (events)
        agent_conn_tell(c, events);
}

/* ---- calls in progress ---- */

static void enter(struct agent *a)
{
    atomic_fetch_add(&a->inside, 1);
}

static void signal_idle(struct agent *a)
{
    pthread_mutex_lock(&a->idle_lock);
    pthread_cond_broadcast(&a->idle);
    pthread_mutex_unlock(&a->idle_lock);
}

static void leave(struct agent *a)
{
    if (atomic_fetch_sub(&a->inside, 1) == 1 && atomic_load(&a->state) == AGENT_STOPPING)
        signal_idle(a);
}

void agent_told(struct agent *a)
{
    signal_idle(a);
}

struct sync {
    struct reactor_task task;
    pthread_mutex_t lock;
    pthread_cond_t ran;
    bool done;
    void (*fn)(struct agent *a);
    struct agent *agent;
};

static void sync_run(struct reactor_task *t)
{
    struct sync *s = CONTAINER(t, struct sync, task);

    if (s->fn)
        s->fn(s->agent);
    pthread_mutex_lock(&s->lock);
    s->done = true;
    pthread_cond_signal(&s->ran);
    pthread_mutex_unlock(&s->lock);
}

/* Runs fn on the loop thread, after all that was posted before, and waits. */
static void call_loop(struct agent *a, void (*fn)(struct agent *a))
{
    struct sync s = { .task.run = sync_run, .fn = fn, .agent = a };

    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.ran, NULL);
    reactor_post(&a->reactor, &s.task);
    pthread_mutex_lock(&s.lock);
    while (!s.done)
        pthread_cond_wait(&s.ran, &s.lock);
    pthread_mutex_unlock(&s.lock);
    pthread_cond_destroy(&s.ran);
    pthread_mutex_destroy(&s.lock);
}

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
    const char *at = (const char *)member;
    tenrec_status st = TENREC_OK;

    for (uint32_t i = 0; i < n && !st; i++, at += member->size)
        st = agent_add_member(a, (const struct tenrec_member *)(const void *)at, err);
    if (!st)
        st = listener_start(&a->listener, err);
    if (st)
        return st;
    atomic_store(&a->state, AGENT_STARTED);
    st = reactor_start(&a->reactor, err);
    if (st)
        atomic_store(&a->state, AGENT_MADE);
    return st;
}

static void op_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    struct agent *a = self->impl;
    tenrec_error err;

    if (agent_add_member(a, member, &err))
        agent_log(a, TENREC_LOG_ERROR, "%s", err.text);
}

static void op_member_left(struct tenrec_agent *self, tenrec_peer id)
{
    struct agent *a = self->impl;
    struct peer *peer = agent_peer(a, id);

    if (peer)
        peer_retire(peer, "it left the group");
}

static const char no_member[] = "no member of the group has that id";

static void send_failed(struct tenrec_msg *msg, struct tenrec_done done, tenrec_status code,
                        const char *text, tenrec_peer to)
{
    tenrec_error err;

    tenrec_fail(&err, code, "worker %d: %s", (int)to, text);
    err.worker = to;
    if (done.fn)
        done.fn(done.arg, &err);
    msg->release(msg);
}

static bool runs(struct agent *a)
{
    return atomic_load(&a->state) == AGENT_STARTED;
}

static void leave_peer(struct agent *a, struct peer *peer, unsigned side)
{
    if (peer_leave(peer, side) && __builtin_expect(!runs(a), 0))
        signal_idle(a);
}

/* Inside of the peer. */
static void send_to(struct agent *a, struct peer *peer, struct tenrec_msg *msg,
                    struct tenrec_done done)
{
    struct pipe *p = peer_out(peer);

    if (!runs(a)) {
        send_failed(msg, done, TENREC_ESHUTDOWN, "this worker does not run", peer->id);
        return;
    }
    if (atomic_load_explicit(&peer->left, memory_order_relaxed)) {
        send_failed(msg, done, TENREC_EPEER_UNKNOWN, no_member, peer->id);
        return;
    }
    if (!p || pipe_state(p) == PIPE_BROKEN)
        p = peer_connect(a, peer);
    if (p)
        pipe_send(p, msg, done);
    else
        send_failed(msg, done, TENREC_ENOMEM, "no memory for a connection", peer->id);
}

static void send_request(struct agent *a, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done)
{
    struct peer *peer = agent_peer(a, to);
    struct pipe *p = batch_reading();
    unsigned side;

    /* The next request from the callback of an answer: that pipe lives. Who
     * delivers for this agent is waited for by shutdown already. */
    if (p && p->outgoing && p->to == peer && p->agent == a && pipe_state(p) == PIPE_ESTABLISHED &&
        runs(a)) {
        pipe_send(p, msg, done);
        return;
    }
    if (!peer) {
        send_failed(msg, done, TENREC_EPEER_UNKNOWN, no_member, to);
        return;
    }
    side = peer_enter(peer);
    send_to(a, peer, msg, done);
    leave_peer(a, peer, side);
}

/* The handler ran elsewhere. Inside of the agent. */
static void send_late_answer(struct agent *a, struct tenrec_msg *msg, struct tenrec_done done)
{
    struct pipe *p;

    if (!runs(a)) {
        send_failed(msg, done, TENREC_ESHUTDOWN, "this worker does not run", TENREC_ANONYMOUS);
        return;
    }
    p = agent_find_pipe(a, msg->route);
    if (!p) {
        agent_count(&a->count.answers_dropped, 1);
        tenrec_done_fail(done, TENREC_EPEER_LOST, "the caller's connection is gone");
        msg->release(msg);
        return;
    }
    pipe_send(p, msg, done);
    pipe_unref(p);
}

static void send_answer(struct agent *a, struct tenrec_msg *msg, struct tenrec_done done)
{
    struct pipe *p = batch_reading();

    /* From an inline handler: the pipe that is being read. */
    if (p && p->agent == a && p->route.generation == msg->route.generation && runs(a)) {
        pipe_send(p, msg, done);
        return;
    }
    enter(a);
    send_late_answer(a, msg, done);
    leave(a);
}

static void op_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                    struct tenrec_done done)
{
    struct agent *a = self->impl;

    if (msg->route.generation)
        send_answer(a, msg, done);
    else
        send_request(a, to, msg, done);
}

static tenrec_status op_poll(struct tenrec_agent *self, tenrec_peer id,
                             const struct tenrec_wait *wait)
{
    struct agent *a = self->impl;
    struct peer *peer = agent_peer(a, id);
    tenrec_status st = TENREC_EUNSUPPORTED;
    struct pipe *p;
    unsigned side;

    if (!peer || reactor_is_me(&a->reactor))
        return st;
    side = peer_enter(peer);
    p = peer_out(peer);
    if (p && runs(a)) {
        atomic_store_explicit(&a->polls, atomic_load_explicit(&a->polls, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        st = pipe_poll(p, wait);
    }
    leave_peer(a, peer, side);
    return st;
}

static void resume_one(struct pipe *p, void *arg)
{
    (void)arg;
    if (atomic_exchange(&p->paused, false))
        pipe_post(p, &p->read_task);
}

static void op_resume(struct tenrec_agent *self)
{
    struct agent *a = self->impl;

    enter(a);
    if (atomic_load(&a->state) == AGENT_STARTED)
        agent_each_pipe(a, resume_one, NULL);
    leave(a);
}

static tenrec_status op_disconnect(struct tenrec_agent *self, tenrec_peer id, tenrec_error *err)
{
    struct agent *a = self->impl;
    struct peer *peer = agent_peer(a, id);
    struct pipe *p = NULL;
    unsigned side;

    if (peer) {
        side = peer_enter(peer);
        p = runs(a) ? peer_out(peer) : NULL;
        if (p) {
            pipe_failf(p, TENREC_EPEER_LOST, 0, "disconnected on request");
            /* The next send shall find a new connection. */
            if (reactor_is_me(&a->reactor))
                pipe_teardown(p);
            else
                call_loop(a, NULL);
        }
        leave_peer(a, peer, side);
    }
    return p ? TENREC_OK
             : tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no connection to worker %d", (int)id);
}

static void add_unsent(struct pipe *p, void *arg)
{
    uint64_t *bytes = arg;

    /* What a batch lets go of is in the queue before. */
    *bytes += atomic_load(&p->gathers);
    *bytes += atomic_load(&p->queued) + atomic_load(&p->untold);
    if (pipe_state(p) != PIPE_ESTABLISHED)
        return;
    *bytes += atomic_load(&p->conn[CONN_DESCRIPTOR]->writing);
    for (int i = 0; i < CONN_ROLES; i++)
        if (p->conn[i] && p->conn[i]->carrier->unread)
            *bytes += p->conn[i]->carrier->unread(p->conn[i]);
}

static tenrec_status op_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct agent *a = self->impl;
    uint64_t until = now_ns() + (uint64_t)ms * 1000000u, left;

    atomic_fetch_add(&a->drainers, 1);
    for (;;) {
        uint64_t now = now_ns(), next = now + DRAIN_LOOK_NS;
        struct timespec ts;

        left = 0;
        agent_each_pipe(a, add_unsent, &left);
        if (!left || now >= until)
            break;
        /* Counters change without our lock: do not rely on being told. */
        if (next > until)
            next = until;
        ts = (struct timespec){ (time_t)(next / 1000000000u), (long)(next % 1000000000u) };
        pthread_mutex_lock(&a->idle_lock);
        pthread_cond_timedwait(&a->idle, &a->idle_lock, &ts);
        pthread_mutex_unlock(&a->idle_lock);
    }
    atomic_fetch_sub(&a->drainers, 1);
    if (!left)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%" PRIu64 " bytes not written after %u ms", left,
                       ms);
}

/* ---- stopping ---- */

static void cancel_pipes(struct agent *a)
{
    struct pipe **v = agent_all_pipes(a);
    tenrec_error why;

    tenrec_fail(&why, TENREC_ECANCELED, "this worker is shutting down");
    for (size_t i = 0; v && v[i]; i++) {
        pipe_fail(v[i], &why);
        pipe_teardown(v[i]);
        pipe_unref(v[i]);
    }
    free(v);
}

/* On the loop thread: nothing comes in and nobody connects from here on. */
static void stop_on_loop(struct agent *a)
{
    listener_stop(&a->listener);
    reactor_disarm(&a->quiet_timer);
    cancel_pipes(a);
}

static void drop_old_pipes(struct agent *a)
{
    for (size_t i = 0; i < AGENT_PEERS; i++)
        for (struct peer *peer = atomic_load(&a->peers[i]); peer; peer = peer->before)
            peer_drop_old(peer);
}

static bool in_use(struct agent *a)
{
    if (atomic_load(&a->inside))
        return true;
    for (size_t i = 0; i < AGENT_PEERS; i++)
        for (struct peer *peer = atomic_load(&a->peers[i]); peer; peer = peer->before)
            if (peer_in_use(peer))
                return true;
    return false;
}

static void op_shutdown(struct tenrec_agent *self)
{
    struct agent *a = self->impl;
    int started = AGENT_STARTED;

    if (!atomic_compare_exchange_strong(&a->state, &started, AGENT_STOPPING))
        return;
    call_loop(a, stop_on_loop);
    pthread_mutex_lock(&a->idle_lock);
    while (in_use(a))
        pthread_cond_wait(&a->idle, &a->idle_lock);
    pthread_mutex_unlock(&a->idle_lock);
    /* Who left last may not have come to it yet. */
    drop_old_pipes(a);
    /* Once more, for pipes that a send made which was inside before. */
    call_loop(a, stop_on_loop);
    reactor_stop(&a->reactor);
    atomic_store(&a->state, AGENT_STOPPED);
}

static void free_peers(struct agent *a)
{
    for (size_t i = 0; i < AGENT_PEERS; i++)
        peer_free(atomic_load(&a->peers[i]));
    free(a->peers);
}

static void op_destroy(struct tenrec_agent *self)
{
    struct agent *a = self->impl;

    op_shutdown(self);
    listener_close(&a->listener);
    drop_old_pipes(a);
    reactor_finish(&a->reactor);
    free_peers(a);
    free(a->pipe);
    pthread_mutex_destroy(&a->lock);
    pthread_mutex_destroy(&a->idle_lock);
    pthread_cond_destroy(&a->idle);
    free(a);
}

static void op_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct agent *a = self->impl;

    enter(a);
    agent_debug_info(a, sink, arg);
    leave(a);
}

/* ---- making one ---- */

static void look_at_one(struct pipe *p, void *arg)
{
    bool *quiet = arg;

    if (p->outgoing && pipe_state(p) == PIPE_ESTABLISHED && atomic_load(&p->role.quiet) &&
        role_wake_loop(p))
        *quiet = true;
}

static void quiet_fire(struct reactor_timer *t)
{
    struct agent *a = CONTAINER(t, struct agent, quiet_timer);
    bool quiet = false;

    agent_each_pipe(a, look_at_one, &quiet);
    if (quiet)
        reactor_arm(&a->reactor, t, now_ns() + QUIET_PERIOD_NS);
}

static void quiet_run(struct reactor_task *t)
{
    struct agent *a = CONTAINER(t, struct agent, quiet_task);

    if (!a->quiet_timer.prev && atomic_load(&a->state) == AGENT_STARTED)
        reactor_arm(&a->reactor, &a->quiet_timer, now_ns() + QUIET_PERIOD_NS);
}

void agent_quieted(struct agent *a)
{
    reactor_post(&a->reactor, &a->quiet_task);
}

static const struct tenrec_agent_ops agent_ops = {
    .size = sizeof(struct tenrec_agent_ops),
    .address = op_address,
    .start = op_start,
    .member_joined = op_member_joined,
    .member_left = op_member_left,
    .send = op_send,
    .poll = op_poll,
    .resume = op_resume,
    .disconnect = op_disconnect,
    .drain = op_drain,
    .shutdown = op_shutdown,
    .destroy = op_destroy,
    .debug_info = op_debug_info,
};

/* Spinning can only pay off when the peer runs meanwhile, on another CPU, and
 * by several threads only when we may use several. */
static void count_cpus(struct agent *a)
{
    cpu_set_t set;

    a->one_cpu = sysconf(_SC_NPROCESSORS_ONLN) < 2;
    a->many_cpus = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 4;
}

/* Everybody can reach uv; what else is possible the handshake finds out. */
static void publish(struct agent *a)
{
    const struct listener_port *port = &a->listener.port[a->listener.n_ports - 1];

    for (unsigned i = 0; i < a->listener.n_ports; i++)
        if (a->listener.port[i].transport == &transport_uv)
            port = &a->listener.port[i];
    snprintf(a->address, sizeof a->address, "%s://%s", port->transport->name, port->address);
}

static void make_offer(struct agent *a)
{
    const struct identity identity = {
        .version = IDENTITY_VERSION,
        .rank = a->me,
        .incarnation = a->incarnation,
        .capabilities = IDENTITY_ALL_DTYPES | IDENTITY_OWN_MESSAGES | IDENTITY_SHORT_LISTS |
                        (TENREC_HAS(a->host, sharing_open) ? IDENTITY_MAPS : 0),
    };

    identity_write(a->identity, &identity);
    for (unsigned i = 0; i < a->listener.n_ports; i++) {
        const struct listener_port *port = &a->listener.port[i];

        a->transport[i] =
            (struct wire_transport){ port->transport->name, port->domain, port->address };
    }
    channels_init(&a->channels, a->options);
    a->offer = (struct wire_offer){ a->transport, a->channels.offered, a->listener.n_ports,
                                    a->channels.n, a->identity };
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
    pthread_condattr_t attr;
    tenrec_status st;

    if (!a)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an agent");
    a->self = self;
    a->host = self->host;
    a->options = in->options;
    a->me = in->me;
    a->incarnation = in->incarnation;
    snprintf(a->name, sizeof a->name, "%s", in->name);
    a->progress = progress_of(a->options->progress);
    count_cpus(a);
    /* Zeroed pages that are never touched cost nothing. */
    a->peers = calloc(AGENT_PEERS, sizeof *a->peers);
    if (!a->peers) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for an agent");
        goto err_agent;
    }
    st = reactor_init(&a->reactor, err);
    if (st)
        goto err_peers;
    st = listener_open(&a->listener, a, err);
    if (st)
        goto err_reactor;
    publish(a);
    make_offer(a);
    a->reactor.spin = agent_spin;
    shm_watch_init(&a->shm);
    a->reactor.arg = a;
    a->quiet_task.run = quiet_run;
    a->quiet_timer.fire = quiet_fire;
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->idle_lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->idle, &attr);
    pthread_condattr_destroy(&attr);
    self->ops = &agent_ops;
    self->impl = a;
    return TENREC_OK;

err_reactor:
    reactor_finish(&a->reactor);
err_peers:
    free(a->peers);
err_agent:
    free(a);
    return st;
}
