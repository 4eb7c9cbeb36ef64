/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - the listening sockets.
 *
 * A misbehaving connection never stops a listening socket. Some descriptors are reserved and never
 * given to strangers: this worker dials, maps memory and queries stores with them. */
#include "agent/listener.h"
#include "agent/agent.h"
#include "proof/prover.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAUSE_NS 100000000u
#define ACCEPT_ROUND 64     /* then other sources have their turn */
#define DESCRIPTORS_KEPT 64 /* for this worker itself, or a quarter of all if that is less */

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
    reactor_arm(&l->agent->ep.reactor, &l->pause, clock_now_ns() + PAUSE_NS);
}

static void pause_over(struct reactor_timer *t)
{
    struct listener *l = CONTAINER(t, struct listener, pause);

    l->paused = false;
    if (watch_ports(l))
        pause_accepting(l);
}

static void listener_starve(struct listener *l, const char *why)
{
    if (!l->starved)
        agent_log(l->agent, TENREC_LOG_WARN, "cannot accept connections for now: %s", why);
    l->starved = true;
    pause_accepting(l);
}

/* Returns true if `n` more descriptors would use up the reserve for members. */
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
    return !descriptors_run_short(l->agent->ep.reactor.epoll_fd, l->wanted.n + n);
}

/* The new connection stays in the backlog until the descriptor of the evicted one is closed. */
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
            newcomer_take(port, fd, &from);
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

/* With TLS all bytes between hosts are encrypted. */
static bool listener_may_use(const struct endpoint *ep, const struct transport *t)
{
    const enum tenrec_security_mode mode =
        ep->proof ? ep->proof->mode(ep->self) : TENREC_SECURITY_NONE;

    return !t->remote || t->encrypted == (mode >= TENREC_SECURITY_TLS);
}

/* Shared memory may be missing by the choice of an administrator; a limit of file sizes is most
 * likely meant for other files. Reported once. */
static enum tenrec_log_level unviable_level(struct listener *l)
{
    if (l->limited || local_file_limit() == UINT64_MAX)
        return TENREC_LOG_DEBUG;
    l->limited = true;
    return TENREC_LOG_WARN;
}

/* Opens all transports of one option name. A better transport that does not work leaves the others
 * usable; an error in the user's settings does not. */
static tenrec_status open_ports(struct listener *l, const char *option, const struct tp_options *o,
                                tenrec_error *err)
{
    char why[sizeof err->text];
    enum tenrec_log_level level;

    for (const struct transport *const *t = transports; *t; t++) {
        if (strcmp((*t)->option, option) != 0 || is_open(l, *t) || l->n_ports == TRANSPORTS_MAX)
            continue;
        if (!listener_may_use(&l->agent->ep, *t))
            continue;
        if ((*t)->viable && !(*t)->viable(why, sizeof why)) {
            level = unviable_level(l);
            agent_log(l->agent, level, "transport %s is not used: %s", (*t)->name, why);
        } else if ((*t)->domain(o, l->port[l->n_ports].domain) && open_port(l, *t, o, err)) {
            if ((*t)->remote || err->code == TENREC_ECONFIG)
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
    handshakes_init(&l->agent->ep.handshakes, l->agent->ep.host->budget);
    /* A non-member is never called: any address will do, but not that of a member
     * with the same options. */
    if (a->ep.me == TENREC_ANONYMOUS) {
        options.port = "0";
        options.listen = options.ifname = options.shm_dir = "";
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
    for (unsigned i = 0; i < l->n_ports; i++) {
        struct reactor_source *s = &l->port[i].source;

        if (s->fd < 0)
            continue;
        local_unlink(s->fd);
        close(s->fd);
        s->fd = -1;
    }
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
    wanted_finish(&l->wanted);
}
