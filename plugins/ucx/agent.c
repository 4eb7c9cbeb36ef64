/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - the operations of an agent: its members, its life, its debug info. */
#include "conn.h"
#include "options.h"
#include "send.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

/* ---- members ------------------------------------------------------------------------- */

static bool peers_grow(struct ucx *u, uint32_t n)
{
    struct peer **more;

    if (n <= u->n_peers)
        return true;
    more = realloc(u->peer, n * sizeof(struct peer *));
    if (!more)
        return false;
    memset(more + u->n_peers, 0, (n - u->n_peers) * sizeof(struct peer *));
    u->peer = more;
    u->n_peers = n;
    return true;
}

/* With the lock. The connection accepts no more sends, and its end is not reported. */
static struct conn *detach(struct ucx *u, struct peer *p)
{
    struct conn *c = p->conn;

    if (!c)
        return NULL;
    p->conn = NULL;
    c->shared.gone = c->shared.told = true;
    c->shared.refs++;
    c->shared.next_detached = u->detached;
    u->detached = c;
    pthread_cond_broadcast(&u->moved);
    return c;
}

/* With the lock. */
static tenrec_status member_add(struct ucx *u, const struct tenrec_member *m)
{
    struct peer *p;

    if (m->id < 0 || !peers_grow(u, (uint32_t)m->id + 1))
        return TENREC_ENOMEM;
    p = u->peer[m->id];
    if (!p)
        p = u->peer[m->id] = calloc(1, sizeof *p);
    if (!p)
        return TENREC_ENOMEM;
    detach(u, p); /* that of an earlier life */
    p->id = m->id;
    p->incarnation = m->incarnation;
    p->name = m->name;
    p->address = m->address;
    p->left = false;
    return TENREC_OK;
}

static void agent_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    struct ucx *u = self->impl;
    tenrec_status st;
    int wake;

    pthread_mutex_lock(&u->lock);
    st = member_add(u, member);
    wake = drive_waker(u);
    pthread_mutex_unlock(&u->lock);
    drive_wake(wake);
    if (st != TENREC_OK)
        self->host->log(self, TENREC_LOG_ERROR, "no memory for member %d", member->id);
}

/* The core fails the waits for a member that left. */
static void agent_member_left(struct tenrec_agent *self, tenrec_peer id)
{
    struct ucx *u = self->impl;
    int wake;

    pthread_mutex_lock(&u->lock);
    if (id >= 0 && (uint32_t)id < u->n_peers && u->peer[id]) {
        u->peer[id]->left = true;
        detach(u, u->peer[id]);
    }
    wake = drive_waker(u);
    pthread_mutex_unlock(&u->lock);
    drive_wake(wake);
}

/* ---- life ---------------------------------------------------------------------------- */

static const char *agent_address(struct tenrec_agent *self)
{
    return ((struct ucx *)self->impl)->address;
}

/* The program handles its signals on its own threads. */
static int thread_start(struct ucx *u)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    r = pthread_create(&u->thread, &attr, drive_run, u);
    pthread_attr_destroy(&attr);
    if (r == 0)
        pthread_setname_np(u->thread, "tenrec-ucx");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static tenrec_status agent_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                 uint32_t n, tenrec_error *err)
{
    struct ucx *u = self->impl;
    tenrec_status st = TENREC_OK;
    int r = 0;

    pthread_mutex_lock(&u->lock);
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        st = member_add(u, member);
        member = (const void *)((const char *)member + member->size);
    }
    if (st == TENREC_OK)
        r = thread_start(u); /* with the lock: senders compare themselves with the thread */
    u->serving = st == TENREC_OK && r == 0;
    pthread_mutex_unlock(&u->lock);
    if (st != TENREC_OK)
        return tenrec_fail(err, st, "no memory for %u members", n);
    if (r == 0)
        return TENREC_OK;
    return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start a thread");
}

static void agent_resume(struct tenrec_agent *self)
{
    struct ucx *u = self->impl;
    int wake;

    pthread_mutex_lock(&u->lock);
    u->resumed = true;
    wake = drive_waker(u);
    pthread_mutex_unlock(&u->lock);
    drive_wake(wake);
}

static tenrec_status agent_disconnect(struct tenrec_agent *self, tenrec_peer id, tenrec_error *err)
{
    struct ucx *u = self->impl;
    struct peer *p;
    struct conn *c;
    tenrec_error why;
    int wake;

    pthread_mutex_lock(&u->lock);
    p = id >= 0 && (uint32_t)id < u->n_peers ? u->peer[id] : NULL;
    if (!p || p->left) {
        pthread_mutex_unlock(&u->lock);
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "there is no worker %d", id);
    }
    c = detach(u, p);
    p->telling += c != NULL;
    wake = drive_waker(u);
    pthread_mutex_unlock(&u->lock);
    drive_wake(wake);
    if (!c)
        return TENREC_OK;
    tenrec_fail(&why, TENREC_EPEER_LOST, "worker \"%s\": disconnected", p->name);
    self->host->peer_lost(self, id, &why);
    pthread_mutex_lock(&u->lock);
    p->telling--;
    pthread_mutex_unlock(&u->lock);
    return TENREC_OK;
}

static tenrec_status agent_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct ucx *u = self->impl;
    const uint64_t deadline_ns = clock_deadline_ms(ms);
    uint64_t left;

    pthread_mutex_lock(&u->lock);
    while (u->pending && clock_cond_wait(&u->moved, &u->lock, deadline_ns))
        ;
    left = u->pending;
    pthread_mutex_unlock(&u->lock);
    if (!left)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%" PRIu64 " sends are left after %u ms", left, ms);
}

static void agent_shutdown(struct tenrec_agent *self)
{
    struct ucx *u = self->impl;
    const uint32_t *left = &u->operations;
    int wake;

    pthread_mutex_lock(&u->lock);
    u->serving = false;
    atomic_store(&u->stopping, true);
    pthread_cond_broadcast(&u->moved);
    pthread_cond_broadcast(&u->given); /* to a guest that waits for its turn */
    wake = drive_waker(u);
    pthread_mutex_unlock(&u->lock);
    drive_wake(wake);
    pthread_join(u->thread, NULL);
    pthread_mutex_lock(&u->lock);
    while (u->guests)
        pthread_cond_wait(&u->moved, &u->lock);
    pthread_mutex_unlock(&u->lock);
    if (*left)
        self->host->log(self, TENREC_LOG_WARN, "UCX left %u operations without an end", *left);
    context_close(u);
    send_fail_posted(u);
    send_complete(u);
}

static void agent_destroy(struct tenrec_agent *self)
{
    struct ucx *u = self->impl;

    context_close(u);
    for (uint32_t i = 0; i < u->n_peers; i++)
        free(u->peer[i]);
    free(u->peer);
    free(u->conn);
    context_close_descriptors(u);
    u->host->budget->close(u->account);
    pthread_cond_destroy(&u->given);
    pthread_cond_destroy(&u->moved);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* ---- threads that read for themselves -------------------------------------------------- */

static tenrec_status agent_poll(struct tenrec_agent *self, tenrec_peer peer,
                                const struct tenrec_wait *wait)
{
    struct ucx *u = self->impl;
    bool connected;

    pthread_mutex_lock(&u->lock);
    connected = peer >= 0 && (uint32_t)peer < u->n_peers && u->peer[peer] && u->peer[peer]->conn;
    pthread_mutex_unlock(&u->lock);
    return connected ? drive_as_guest(u, wait) : TENREC_EUNSUPPORTED;
}

static tenrec_status agent_lead(struct tenrec_agent *self, const struct tenrec_wait *wait)
{
    return drive_as_guest(self->impl, wait);
}

/* ---- debug info ---------------------------------------------------------------------- */

/* One line for each peer that we are connected to. */
static void push_peers(struct ucx *u, tenrec_sink_fn *sink, void *arg)
{
    for (uint32_t i = 0;; i++) {
        char key[32], lanes[UCX_TEXT] = "";
        bool more;

        pthread_mutex_lock(&u->lock);
        more = i < u->n_peers;
        if (more && u->peer[i] && u->peer[i]->conn)
            memcpy(lanes, u->peer[i]->conn->shared.lanes, sizeof lanes);
        pthread_mutex_unlock(&u->lock);
        if (!more)
            return;
        snprintf(key, sizeof key, "peer.%u.transports", i);
        if (*lanes)
            sink(arg, key, lanes);
    }
}

static void agent_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct ucx *u = self->impl;
    uint64_t sent, received, pending, conns;

    pthread_mutex_lock(&u->lock);
    sent = u->sent;
    received = u->received;
    pending = u->pending;
    conns = u->n_conns;
    pthread_mutex_unlock(&u->lock);
    sink(arg, "address", u->address);
    sink(arg, "version", ucp_get_version_string());
    tenrec_sink_number(sink, arg, "sent", sent);
    tenrec_sink_number(sink, arg, "received", received);
    tenrec_sink_number(sink, arg, "pending", pending);
    tenrec_sink_number(sink, arg, "connections", conns);
    tenrec_sink_number(sink, arg, "proofs_refused", atomic_load(&u->proofs_refused));
    tenrec_sink_number(sink, arg, "strays", atomic_load(&u->strays));
    push_peers(u, sink, arg);
    probe_push_unused(u->opt, sink, arg);
}

/* Of data that is fetched by rendezvous UCX says only when it is complete: a tensor counts as a
 * whole. */
static void agent_received(struct tenrec_agent *self, uint64_t *received, uint32_t n)
{
    struct ucx *u = self->impl;

    pthread_mutex_lock(&u->lock);
    for (uint32_t i = 0; i < u->n_slots; i++) {
        const struct conn *c = u->conn[i];
        const tenrec_peer from = c ? conn_from_locked(c) : TENREC_ANONYMOUS;

        if (from >= 0 && (uint32_t)from < n)
            received[from] += atomic_load(&c->inbox.arrived);
    }
    pthread_mutex_unlock(&u->lock);
}

static const struct tenrec_traffic agent_traffic = {
    .extension = { TENREC_EXTENSION_TRAFFIC, sizeof agent_traffic, NULL },
    .received = agent_received,
};

static const struct tenrec_agent_ops agent_ops = {
    .size = sizeof agent_ops,
    .extensions = &agent_traffic.extension,
    .address = agent_address,
    .start = agent_start,
    .member_joined = agent_member_joined,
    .member_left = agent_member_left,
    .send = send_message,
    .poll = agent_poll,
    .lead = agent_lead,
    .resume = agent_resume,
    .disconnect = agent_disconnect,
    .drain = agent_drain,
    .shutdown = agent_shutdown,
    .destroy = agent_destroy,
    .debug_info = agent_debug_info,
};

/* UCX makes a thread of its own here. */
static tenrec_status open_quietly(struct ucx *u, const char *host_address, tenrec_error *err)
{
    sigset_t all, before;
    tenrec_status st;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    st = context_open(u, host_address, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

tenrec_status agent_new(const struct tenrec_init *in, struct tenrec_agent *self, tenrec_error *err)
{
    struct ucx *u = calloc(1, sizeof *u);

    if (!u)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the ucx agent");
    u->self = self;
    u->host = self->host;
    u->opt = in->options;
    u->me = in->me;
    u->incarnation = in->incarnation;
    u->how = *u->opt->progress == 'b'   ? WAIT_BUSY
             : *u->opt->progress == 's' ? WAIT_SLEEP
                                        : WAIT_ADAPTIVE;
    u->own_fd = u->guest_fd = u->epoll_fd = u->event_fd = u->asleep_fd = -1;
    u->out_last = &u->out_first;
    u->ended_last = &u->ended_first;
    pthread_mutex_init(&u->lock, NULL);
    clock_cond_init(&u->moved);
    clock_cond_init(&u->given);
    self->impl = u;
    u->account = u->host->budget->open();
    if (!u->account) {
        agent_destroy(self);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the ucx agent");
    }
    if (prove_open(u, err) != TENREC_OK ||
        open_quietly(u, TENREC_HAS(in, host_address) ? in->host_address : "", err) != TENREC_OK) {
        agent_destroy(self);
        return err->code;
    }
    self->ops = &agent_ops;
    return TENREC_OK;
}
