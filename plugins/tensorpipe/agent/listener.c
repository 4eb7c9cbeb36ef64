/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - accepts connections and finds out what they are.
 *
 * Whatever one connection does, the socket goes on listening: a stranger that
 * says nothing is closed after the hello's limit, or earlier when its place is
 * needed, one that talks nonsense at once, and some descriptors are never given
 * to strangers: this worker dials, maps and asks stores with them. */
#include "agent/listener.h"
#include "admission/budget.h"
#include "agent/agent.h"
#include "pipe/life/pipe_life.h"
#include "proof/prover.h"
#include "wire/handshake/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAUSE_NS 100000000u
#define ACCEPT_ROUND 64     /* then other sources have their turn */
#define DESCRIPTORS_KEPT 64 /* for this worker itself, or a quarter of all if that is less */

static void unlist_conn(struct listener *l, struct conn *c)
{
    handshakes_remove(&l->agent->ep.handshakes, &c->handshake);
    reactor_disarm(&c->timer);
}

TENREC_PRINTF(4, 5)
static void listener_refuse(struct listener *l, struct conn *c, enum tenrec_log_level level,
                            const char *fmt, ...)
{
    char where[TRANSPORT_TEXT_MAX], text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    transport_format(&c->peer, where);
    counter_add(&l->agent->ep.count.handshakes_failed, 1);
    agent_log(l->agent, level, "connection from %s closed: %s", where, text);
    unlist_conn(l, c);
    conn_drop(c);
}

static void listener_refuse_stranger(struct listener *l, struct conn *c, const char *why)
{
    counter_add(&l->agent->ep.count.proofs_refused, 1);
    listener_refuse(l, c, TENREC_LOG_WARN, "%s", why);
}

static void hello_missing(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    listener_refuse(c->owner, c, TENREC_LOG_DEBUG, "its hello did not arrive in time");
}

static void await_hello(struct conn *c, uint64_t limit_ms, void (*fire)(struct reactor_timer *t))
{
    c->timer.fire = fire;
    reactor_arm(&c->ep->reactor, &c->timer, now_ns() + limit_ms * 1000000u);
}

/* A caller whose process is not run for a while connects, and sends its hello seconds later. */
static void hello_late(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    if (handshake_is_awaited(&c->handshake))
        await_hello(c, c->ep->options->handshake_timeout_ms, hello_missing);
    else
        hello_missing(t);
}

static void conn_evict(struct handshake *h, const char *why)
{
    struct conn *c = CONTAINER(h, struct conn, handshake);

    listener_refuse(c->owner, c, TENREC_LOG_DEBUG, "%s", why);
}

static int watch_ports(struct listener *l)
{
    int e = 0;

    for (unsigned i = 0; i < l->n_ports && !e; i++)
        e = reactor_rewatch(&l->agent->ep.reactor, &l->port[i].source, EPOLLIN);
    return e;
}

static void unwatch_ports(struct listener *l)
{
    for (unsigned i = 0; i < l->n_ports; i++)
        reactor_unwatch(&l->agent->ep.reactor, &l->port[i].source);
}

static void pause_accepting(struct listener *l)
{
    if (!l->paused)
        unwatch_ports(l);
    l->paused = true;
    reactor_arm(&l->agent->ep.reactor, &l->pause, now_ns() + PAUSE_NS);
}

static void pause_over(struct reactor_timer *t)
{
    struct listener *l = CONTAINER(t, struct listener, pause);

    l->paused = false;
    if (watch_ports(l))
        pause_accepting(l);
}

static void listener_conn_ready(struct conn *c, uint32_t events);

static void listener_proof_refused(struct conn *c, const tenrec_error *why)
{
    listener_refuse(c->owner, c, why->code == TENREC_ECONNECT ? TENREC_LOG_DEBUG : TENREC_LOG_WARN,
                    "%s", why->text);
}

/* Returns false if the connection is refused: its transport has no room for a proof. */
static bool listener_demand_proof(struct conn *c)
{
    if (c->transport->plain)
        return prover_admits(c);
    if (c->ep->proves)
        prover_listen(c, listener_proof_refused);
    return true;
}

static void listener_take(struct listener_port *port, int fd, const union transport_address *from)
{
    struct listener *l = port->listener;
    struct agent *a = l->agent;
    struct conn *c = port->transport->accept(&a->ep, fd, from);
    struct source *source;

    if (!c)
        return;
    conn_set_owner(c, listener_conn_ready, l);
    source = source_get(&c->peer, c->pid);
    if (a->ep.proves && !source_may_prove(source, now_ns())) {
        source_put(source);
        listener_refuse_stranger(l, c, "too many connections from its address have proved nothing");
        return;
    }
    c->handshake.evict = conn_evict;
    c->handshake.local = c->peer.any.sa_family == AF_UNIX;
    handshakes_add(&a->ep.handshakes, &c->handshake, source);
    if (c->handshake.local)
        await_hello(c, a->ep.options->handshake_timeout_ms, hello_missing);
    else
        await_hello(c, a->ep.options->hello_timeout_ms, hello_late);
    if (!listener_demand_proof(c))
        listener_refuse_stranger(l, c, "its transport cannot carry a proof");
    else if (c->stream->hear(c, HEARS_ALL))
        listener_refuse(l, c, TENREC_LOG_WARN, "cannot watch it");
}

static void listener_starve(struct listener *l, const char *why)
{
    if (!l->starved)
        agent_log(l->agent, TENREC_LOG_WARN, "cannot accept connections for now: %s", why);
    l->starved = true;
    pause_accepting(l);
}

/* Returns true when `n` more descriptors would take one of those that strangers do not get. */
static bool descriptors_run_short(int fd, rlim_t n)
{
    struct rlimit limit;
    int next = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (next < 0)
        return true;
    close(next);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    if (limit.rlim_cur / 4 > DESCRIPTORS_KEPT)
        return (rlim_t)next + n > limit.rlim_cur - DESCRIPTORS_KEPT;
    return (rlim_t)next + n > limit.rlim_cur - limit.rlim_cur / 4;
}

bool listener_has_room(const struct listener *l, unsigned n)
{
    return !descriptors_run_short(l->agent->ep.reactor.epoll_fd, l->n_wanted + n);
}

/* A connection waits, and is accepted when the descriptor of the one that goes is closed. */
static void listener_make_room(struct listener *l)
{
    if (!handshakes_evict_oldest(&l->agent->ep.handshakes, "descriptors run short"))
        listener_starve(l, "the descriptors that are left are kept for this worker itself");
}

static void listener_ready(struct reactor_source *s, uint32_t events)
{
    struct listener_port *port = CONTAINER(s, struct listener_port, source);
    struct listener *l = port->listener;

    (void)events;
    for (int i = 0; i < ACCEPT_ROUND; i++) {
        union transport_address from = { .any = { .sa_family = AF_UNSPEC } };
        socklen_t len = sizeof from;
        int fd;

        if (descriptors_run_short(s->fd, 1)) {
            if (i == 0)
                listener_make_room(l);
            return;
        }
        fd = accept4(s->fd, &from.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            l->starved = false;
            listener_take(port, fd, &from);
            continue;
        }
        switch (errno) {
        case EAGAIN:
            return;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            listener_starve(l, strerror(errno));
            return;
        default: /* an error of the one connection */
            break;
        }
    }
}

static tenrec_status open_port(struct listener *l, const struct transport *t,
                               const struct tp_options *o, tenrec_error *err)
{
    struct listener_port *port = &l->port[l->n_ports];
    tenrec_status st = t->listen(o, &port->source.fd, port->address, err);

    if (st)
        return st;
    port->source.ready = listener_ready;
    port->listener = l;
    port->transport = t;
    t->domain(port->domain);
    l->n_ports++;
    return TENREC_OK;
}

static bool is_open(const struct listener *l, const struct transport *t)
{
    for (unsigned i = 0; i < l->n_ports; i++)
        if (l->port[i].transport == t)
            return true;
    return false;
}

/* With TLS all bytes between hosts are encrypted. In mode mtls only certificates prove, which the
 * rings do not exchange. */
static bool listener_may_use(const struct endpoint *ep, const struct transport *t)
{
    const enum tenrec_security_mode mode =
        ep->proof ? ep->proof->mode(ep->self) : TENREC_SECURITY_NONE;

    if (t->remote)
        return t->encrypted == (mode >= TENREC_SECURITY_TLS);
    return mode != TENREC_SECURITY_MTLS && (!t->plain || prover_admits_any(ep));
}

/* All that one name of the option stands for. A better transport that does not
 * work is no reason to do without the others; what the user said about uv is. */
static tenrec_status open_ports(struct listener *l, const char *option, const struct tp_options *o,
                                tenrec_error *err)
{
    char why[sizeof err->text];

    for (const struct transport *const *t = transports; *t; t++) {
        if (!transport_is_meant(*t, option) || is_open(l, *t) || l->n_ports == TRANSPORTS_MAX)
            continue;
        if (!listener_may_use(&l->agent->ep, *t))
            continue;
        if ((*t)->viable && !(*t)->viable(why, sizeof why)) {
            agent_log(l->agent, TENREC_LOG_DEBUG, "transport %s is not used: %s", (*t)->name, why);
        } else if (open_port(l, *t, o, err)) {
            if ((*t)->remote)
                return err->code;
            agent_log(l->agent, TENREC_LOG_WARN, "transport %s is not used: %s", (*t)->name,
                      err->text);
        }
    }
    return TENREC_OK;
}

/* Members are on other hosts: loopback would not do. */
static void listen_for_others(const struct agent *a, struct tp_options *o)
{
    bool v6 = strchr(a->host_address, ':') != NULL;

    if (!*a->host_address)
        return;
    if (strcmp(o->family, v6 ? "ipv4" : "ipv6") == 0)
        o->ifname = "^lo"; /* the family counts more */
    else
        o->listen = a->host_address;
}

tenrec_status listener_open(struct listener *l, struct agent *a, tenrec_error *err)
{
    const struct tenrec_option_list *list = &a->ep.options->transports;
    struct tp_options options = *a->ep.options;
    tenrec_status st = TENREC_OK;

    *l = (struct listener){ .agent = a };
    l->pause.fire = pause_over;
    handshakes_init(&l->agent->ep.handshakes);
    /* A non-member is never called: any address will do, but not that of a member
     * with the same options. */
    if (a->ep.me == TENREC_ANONYMOUS) {
        options.port = "0";
        options.listen = options.ifname = "";
    } else if (!*options.listen && !*options.ifname) {
        listen_for_others(a, &options);
    }
    for (size_t i = 0; i < list->n && !st; i++)
        st = open_ports(l, list->v[i].s, &options, err);
    if (!st && l->n_ports == 0)
        st = tenrec_fail(err, TENREC_ECONFIG, "transports: none of those listed works here");
    if (st)
        listener_close(l);
    return st;
}

tenrec_status listener_start(struct listener *l, tenrec_error *err)
{
    int e = watch_ports(l);

    return e ? tenrec_fail_errno(err, TENREC_EOS, e, "cannot watch the listening sockets")
             : TENREC_OK;
}

static void close_ports(struct listener *l)
{
    for (unsigned i = 0; i < l->n_ports; i++)
        if (l->port[i].source.fd >= 0)
            close(l->port[i].source.fd);
    for (unsigned i = 0; i < l->n_ports; i++)
        l->port[i].source.fd = -1;
}

void listener_stop(struct listener *l)
{
    if (l->stopped)
        return;
    l->stopped = true;
    reactor_disarm(&l->pause);
    unwatch_ports(l);
    close_ports(l);
    while (handshakes_evict_oldest(&l->agent->ep.handshakes, "this worker stops"))
        continue;
}

void listener_close(struct listener *l)
{
    close_ports(l);
    free(l->wanted);
}

static const struct registration *find_wanted(const struct listener *l, uint64_t id)
{
    for (size_t i = 0; i < l->n_wanted; i++)
        if (l->wanted[i].id == id)
            return &l->wanted[i];
    return NULL;
}

/* Draws an id that only the answer to the caller contains: a process on the caller's
 * host cannot guess the id, and so not take the place of one of the pipe's connections. */
static bool draw_id(const struct listener *l, uint64_t *ret)
{
    do {
        if (getrandom(ret, sizeof *ret, 0) != (ssize_t)sizeof *ret)
            return false;
    } while (find_wanted(l, *ret));
    return true;
}

tenrec_status listener_want(struct listener *l, struct pipe *p, enum conn_role role,
                            uint64_t *ret_id)
{
    if (l->n_wanted == l->cap_wanted) {
        size_t cap = l->cap_wanted ? 2 * l->cap_wanted : 8;
        struct registration *bigger = realloc(l->wanted, cap * sizeof *bigger);

        if (!bigger)
            return TENREC_ENOMEM;
        l->wanted = bigger;
        l->cap_wanted = cap;
    }
    if (!draw_id(l, ret_id))
        return TENREC_EOS;
    l->wanted[l->n_wanted++] = (struct registration){ *ret_id, p, role };
    return TENREC_OK;
}

void listener_withdraw(struct listener *l, const struct pipe *p)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n_wanted; i++)
        if (l->wanted[i].pipe != p)
            l->wanted[n++] = l->wanted[i];
    l->n_wanted = n;
}

/* The id is a secret of the caller's, as long as the wire is not read: what else is known
 * of the caller must fit, too. */
static bool comes_from_its_caller(const struct conn *c, const struct pipe *p)
{
    return c->transport == p->transport && transport_same_host(&c->peer, &p->remote) &&
           (!p->pid || p->pid == c->pid) && conn_peer_equal(&c->proof.peer, &p->proved);
}

static void listener_take_requested(struct listener *l, struct conn *c, uint64_t id, uint32_t end)
{
    const struct registration *at = find_wanted(l, id);
    struct registration r;

    if (!at) {
        listener_refuse(l, c, TENREC_LOG_DEBUG, "no pipe waits for the connection of this id");
        return;
    }
    r = *at;
    if (!comes_from_its_caller(c, r.pipe)) {
        listener_refuse(l, c, TENREC_LOG_WARN,
                        "the pipe of another caller waits for this connection");
        return;
    }
    l->wanted[at - l->wanted] = l->wanted[--l->n_wanted];
    unlist_conn(l, c);
    pipe_adopt(r.pipe, c, r.role);
    if (end)
        c->on_events(c, end);
}

/* Takes the connection's first frame, which is there as a whole. Its `end` may have
 * been reported with it, and is reported once. */
static void listener_take_hello(struct listener *l, struct conn *c, const unsigned char *body,
                                size_t len, uint32_t end)
{
    struct hello hello;
    struct pipe *p;
    tenrec_error err;

    counter_add(&l->agent->ep.count.hellos, 1);
    if (hello_read(body, len, &hello, &err)) {
        listener_refuse(l, c, TENREC_LOG_WARN, "%s", err.text);
        return;
    }
    if (c->proof.peer.proved && hello.id != c->proof.label) {
        listener_refuse(l, c, TENREC_LOG_WARN, "its proof is of another connection");
        return;
    }
    switch (hello.kind) {
    case HELLO_EMPTY:
        listener_refuse(l, c, TENREC_LOG_DEBUG, "an empty hello");
        return;
    case HELLO_REQUESTED:
        c->pos += FRAME_HEAD + len;
        listener_take_requested(l, c, hello.id, end);
        return;
    case HELLO_SPONTANEOUS:
        unlist_conn(l, c);
        p = pipe_accept(&l->agent->ep, c, hello.name);
        if (p) {
            source_admit(p->source); /* as long as the pipe has it */
            c->pos += FRAME_HEAD + len;
            pipe_accept_ready(p, c, end);
        }
        return;
    }
}

/* In mode none, from a peer that has a secret. */
static void listener_refuse_proof(struct listener *l, struct conn *c)
{
    tenrec_error why;

    prover_explain(c, TENREC_ANONYMOUS, &why);
    listener_refuse_stranger(l, c, why.text);
}

/* A connection without pipe has something to read, or ends. */
static void listener_conn_ready(struct conn *c, uint32_t events)
{
    struct listener *l = c->owner;
    uint64_t max = CONN_BUFFER - FRAME_HEAD; /* a name of no honest caller is longer */
    const unsigned char *body;
    bool is_short;
    size_t len = 0;

    for (;;) {
        enum frame f = conn_frame(c, max, &body, &len);
        ssize_t n;
        int e;

        if (f == FRAME_WHOLE) {
            listener_take_hello(l, c, body, len, events & CONN_END);
            return;
        }
        if (prover_begins(c)) {
            listener_refuse_proof(l, c);
            return;
        }
        if (f != FRAME_PARTIAL) {
            listener_refuse(l, c, TENREC_LOG_WARN, "a hello of %zu bytes", len);
            return;
        }
        n = conn_read(c, NULL, 0, false, &is_short, &e);
        if (n < 0) {
            listener_refuse(l, c, TENREC_LOG_DEBUG, "%s before its hello",
                            e ? strerror(e) : "closed");
            return;
        }
        if (n == 0)
            return;
    }
}
