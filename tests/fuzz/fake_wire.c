/* SPDX-License-Identifier: Apache-2.0 */
/* fake_wire.c - a stream and two transports in memory. */
#include "fake_wire.h"
#include "agent/agent.h"
#include "fuzz.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_STEP_NS 20000u /* each reading of a clock takes so long */
#define FAKE_FD 1000         /* what accept4 returns; no such descriptor is open */

struct fake_wire fake_wire;

/* ---- clock and accept, instead of the C library's ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_accept4(int fd, struct sockaddr *ret, socklen_t *len, int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    (void)clock;
    fake_wire.now_ns += CLOCK_STEP_NS;
    ret->tv_sec = (time_t)(fake_wire.now_ns / 1000000000u);
    ret->tv_nsec = (long)(fake_wire.now_ns % 1000000000u);
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *ret, socklen_t *len, int flags)
{
    union transport_address from = { .v4 = { .sin_family = AF_INET, .sin_port = htons(9) } };

    (void)fd, (void)flags;
    if (!fake_wire.calling) {
        errno = EAGAIN;
        return -1;
    }
    fake_wire.calling = false;
    from.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fake_wire.near_calling)
        from = (union transport_address){ .local = { .sun_family = AF_UNIX } };
    *len = fake_wire.near_calling ? sizeof(sa_family_t) : sizeof from.v4;
    memcpy(ret, &from, *len);
    return FAKE_FD;
}

/* ---- stream ---- */

struct fake_conn *fake_wire_of(const struct conn *c)
{
    return c->medium;
}

static size_t fake_conn_readable(const struct fake_conn *c)
{
    return c->granted - c->at;
}

static ssize_t fake_read(struct conn *conn, struct iovec *iov, int n, bool wait)
{
    struct fake_conn *c = conn->medium;
    ssize_t total = 0;

    (void)wait;
    if (fake_wire.poller_reads && !reactor_mine)
        fake_wire.poller_reads(fake_wire.poller);
    for (int i = 0; i < n; i++) {
        size_t part = fake_conn_readable(c);

        if (part > iov[i].iov_len)
            part = iov[i].iov_len;
        if (part)
            memcpy(iov[i].iov_base, c->in + c->at, part);
        c->at += part;
        total += (ssize_t)part;
    }
    if (total)
        return total;
    if (c->ended && c->at == c->len)
        return -c->error;
    return -EAGAIN;
}

static ssize_t fake_write(struct conn *conn, struct iovec *iov, unsigned n)
{
    struct fake_conn *c = conn->medium;
    ssize_t total = 0;

    if (c->ended)
        return -EPIPE;
    for (unsigned i = 0; i < n; i++) {
        size_t part = iov[i].iov_len < c->room ? iov[i].iov_len : c->room;
        size_t kept = c->out ? FAKE_OUT_MAX - c->out_len : 0;
        const unsigned char *from = iov[i].iov_base;

        if (kept > part)
            kept = part;
        if (kept)
            memcpy(c->out + c->out_len, from, kept);
        if (part)
            fuzz_touch(from, part);
        c->out_len += kept;
        c->room -= part;
        total += (ssize_t)part;
    }
    c->starved = c->room == 0;
    return total ? total : -EAGAIN;
}

static int fake_hear(struct conn *conn, enum conn_hears what)
{
    struct fake_conn *c = conn->medium;

    c->hears = what;
    if (what == HEARS_ALL && fake_conn_readable(c))
        c->news |= EPOLLIN;
    if (what != HEARS_NOTHING && c->ended)
        c->news |= EPOLLRDHUP;
    if (what != HEARS_NOTHING && (c->room || c->ended))
        c->news |= EPOLLOUT;
    return 0;
}

static bool fake_want_room(struct conn *conn, bool quiet)
{
    struct fake_conn *c = conn->medium;

    if (quiet)
        fake_hear(conn, HEARS_ROOM);
    c->starved = true;
    return false;
}

static bool fake_sleep(struct conn *conn, struct conn_sleep *ret)
{
    const struct fake_conn *c = conn->medium;

    *ret = (struct conn_sleep){ .fd = -1, .ns = 1 };
    return !fake_conn_readable(c) && !c->ended;
}

static void fake_awake(struct conn *conn)
{
    (void)conn;
}

static int fake_connected(struct conn *conn)
{
    struct fake_conn *c = conn->medium;

    c->connected = true;
    return c->refused;
}

static void fake_cut(struct conn *conn)
{
    struct fake_conn *c = conn->medium;

    c->hears = HEARS_NOTHING;
    c->ended = true;
}

static void fake_drop(struct conn *conn)
{
    struct fake_conn *c = conn->medium;

    c->hears = HEARS_NOTHING;
    c->gone = true;
}

static void fake_free(struct conn *conn)
{
    struct fake_conn *c = conn->medium;

    if (conn->source.fd >= 0)
        close(conn->source.fd);
    c->conn = NULL;
}

static const struct stream fake_far = {
    .read = fake_read,
    .write = fake_write,
    .hear = fake_hear,
    .want_room = fake_want_room,
    .sleep = fake_sleep,
    .connected = fake_connected,
    .cut = fake_cut,
    .free = fake_free,
};

static const struct stream fake_near = {
    .passes_fds = true,
    .read = fake_read,
    .write = fake_write,
    .hear = fake_hear,
    .want_room = fake_want_room,
    .sleep = fake_sleep,
    .awake = fake_awake,
    .connected = fake_connected,
    .cut = fake_cut,
    .drop = fake_drop,
    .free = fake_free,
};

/* ---- transports ---- */

static const struct transport far_transport, near_transport;

static struct conn *fake_conn_new(struct endpoint *ep, bool near, bool dialled,
                                  const union transport_address *peer)
{
    struct fake_conn *c = &fake_wire.conn[fake_wire.n];

    if (fake_wire.n == FAKE_CONNS)
        return NULL;
    *c = (struct fake_conn){ .near = near, .dialled = dialled, .room = SIZE_MAX, .fd = -1 };
    c->out = dialled ? malloc(FAKE_OUT_MAX) : NULL;
    c->conn = conn_new(ep, near ? &near_transport : &far_transport, near ? &fake_near : &fake_far,
                       -1, peer);
    fuzz_expect((c->out || !dialled) && c->conn);
    c->conn->medium = c;
    c->conn->pid = near ? getpid() : 0;
    c->refused = dialled ? fake_wire.refuses : 0;
    if (c->refused == EINPROGRESS)
        c->room = 0; /* it stays under way */
    fake_wire.n++;
    return c->conn;
}

static tenrec_status fake_listen(int *ret_fd, char ret_address[TRANSPORT_TEXT_MAX],
                                 const char *address)
{
    *ret_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(ret_address, TRANSPORT_TEXT_MAX, "%s", address);
    return *ret_fd < 0 ? TENREC_EOS : TENREC_OK;
}

static tenrec_status far_listen(const struct tp_options *o, int *ret_fd,
                                char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err)
{
    (void)o, (void)err;
    return fake_listen(ret_fd, ret_address, "127.0.0.1:1");
}

static tenrec_status near_listen(const struct tp_options *o, int *ret_fd,
                                 char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err)
{
    (void)o, (void)err;
    return fake_listen(ret_fd, ret_address, "here");
}

static tenrec_status far_parse(const char *text, size_t len, union transport_address *ret,
                               tenrec_error *err)
{
    if (!memchr(text, ':', len))
        return tenrec_fail(err, TENREC_EINVAL, "address \"%.*s\"", (int)(len < 80 ? len : 80),
                           text);
    *ret = (union transport_address){ .v4 = { .sin_family = AF_INET, .sin_port = htons(1) } };
    ret->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return TENREC_OK;
}

static tenrec_status near_parse(const char *text, size_t len, union transport_address *ret,
                                tenrec_error *err)
{
    (void)text;
    if (len == 0)
        return tenrec_fail(err, TENREC_EINVAL, "address \"\"");
    *ret = (union transport_address){ .local = { .sun_family = AF_UNIX } };
    return TENREC_OK;
}

static struct conn *far_accept(struct endpoint *ep, int fd, const union transport_address *from)
{
    (void)fd;
    return fake_conn_new(ep, false, false, from);
}

static struct conn *near_accept(struct endpoint *ep, int fd, const union transport_address *from)
{
    (void)fd;
    return fake_conn_new(ep, true, false, from);
}

static int far_connect(struct endpoint *ep, const union transport_address *to, struct conn **ret)
{
    if (fake_wire.refuses == ENETUNREACH)
        return ENETUNREACH;
    *ret = fake_conn_new(ep, false, true, to);
    return *ret ? 0 : ENOMEM;
}

static int near_connect(struct endpoint *ep, const union transport_address *to, struct conn **ret)
{
    *ret = fake_conn_new(ep, true, true, to);
    return *ret ? 0 : ENOMEM;
}

static bool far_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    (void)o;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "uv:*");
    return true;
}

static bool near_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    (void)o;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "here");
    return true;
}

static const struct transport far_transport = {
    .name = FAKE_FAR,
    .option = FAKE_FAR,
    .domain = far_domain,
    .listen = far_listen,
    .parse = far_parse,
    .accept = far_accept,
    .connect = far_connect,
};

static const struct transport near_transport = {
    .name = FAKE_NEAR,
    .option = FAKE_NEAR,
    .domain = near_domain,
    .listen = near_listen,
    .parse = near_parse,
    .accept = near_accept,
    .connect = near_connect,
};

const struct transport *const transports[] = { &near_transport, &far_transport, NULL };

/* ---- the peer's side ---- */

void fake_wire_init(void)
{
    fake_wire = (struct fake_wire){ .now_ns = 1000000000u };
}

void fake_wire_finish(void)
{
    for (unsigned i = 0; i < fake_wire.n; i++) {
        fuzz_expect(!fake_wire.conn[i].conn); /* the agent has freed all of them */
        free(fake_wire.conn[i].in);
        free(fake_wire.conn[i].out);
        if (fake_wire.conn[i].fd >= 0)
            close(fake_wire.conn[i].fd);
    }
}

struct fake_conn *fake_wire_call(struct agent *a, bool near)
{
    const unsigned before = fake_wire.n;

    fake_wire.calling = true;
    fake_wire.near_calling = near;
    for (unsigned i = 0; i < a->listener.n_ports; i++) {
        struct listener_port *port = &a->listener.port[i];

        if (port->transport == (near ? &near_transport : &far_transport))
            port->source.ready(&port->source, EPOLLIN);
    }
    fake_wire.calling = false;
    return fake_wire.n > before ? &fake_wire.conn[before] : NULL;
}

void fake_conn_write(struct fake_conn *c, const void *data, size_t len, size_t granted)
{
    if (c->ended)
        return;
    if (c->cap - c->len < len) {
        c->cap = (c->len + len) * 2;
        c->in = realloc(c->in, c->cap);
        fuzz_expect(c->in != NULL);
    }
    if (len)
        memcpy(c->in + c->len, data, len);
    c->len += len;
    fake_wire.written += len;
    c->granted = granted && granted < c->len - c->granted ? c->granted + granted : c->len;
    if (fake_conn_readable(c))
        c->news |= EPOLLIN;
}

void fake_conn_end(struct fake_conn *c, int error)
{
    if (c->ended)
        return;
    c->ended = true;
    c->error = error;
    c->granted = error ? c->at : c->len; /* a reset takes with it what was not read */
    c->len = c->granted;
    c->news |= error ? EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
}

void fake_conn_allow(struct fake_conn *c, size_t room)
{
    c->room = room;
    if (room && c->starved) {
        c->starved = false;
        c->news |= EPOLLOUT;
    }
}

void fake_conn_open_socket(struct fake_conn *c)
{
    int pair[2];

    if (!c->near || !c->conn || c->fd >= 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return;
    c->conn->source.fd = pair[0];
    c->fd = pair[1];
}

/* The events that a kernel's edge-triggered set would report now. */
static uint32_t fake_conn_events(struct fake_conn *c)
{
    uint32_t heard = 0, events;

    if (!c->conn || c->gone)
        return 0;
    if (c->hears != HEARS_NOTHING)
        heard = EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP;
    if (c->hears == HEARS_ALL)
        heard |= EPOLLIN;
    events = c->news & heard;
    c->news &= ~events;
    return events;
}

bool fake_wire_tell(void)
{
    bool any = false;

    for (unsigned i = 0; i < fake_wire.n; i++) {
        const uint32_t events = fake_conn_events(&fake_wire.conn[i]);

        if (!events)
            continue;
        any = true;
        fake_wire.conn[i].conn->on_events(fake_wire.conn[i].conn, events);
    }
    return any;
}
