/* SPDX-License-Identifier: Apache-2.0 */
/* stream_tls.c - the bytes of a TCP connection through a TLS session of the core. */
#include "endpoint.h"
#include "transport/conn.h"
#include "transport/tcp/transport_uv.h"
#include "transport/tls/transport_tls.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct stream_tls_medium {
    struct conn *conn;
    struct reactor_task told; /* of bytes that the session has and the socket does not */
};

static const struct tenrec_tls_service *stream_tls_service(const struct conn *c)
{
    return c->ep->tls;
}

static ssize_t stream_tls_read(struct conn *c, struct iovec *iov, int n, bool wait)
{
    const struct tenrec_tls_service *s = stream_tls_service(c);
    struct pollfd p = { .fd = c->source.fd, .events = POLLIN };

    /* A drained session has nothing before its socket does: a read ahead of the wait would be in
     * vain. The wait is outside the session, whose lock a writer may need at that time. */
    if (wait && s->drained(c->tls) && poll(&p, 1, CONN_WAIT_MS) <= 0)
        return -EAGAIN;
    return s->read(c->tls, iov, n);
}

static ssize_t stream_tls_write(struct conn *c, struct iovec *iov, unsigned n)
{
    return stream_tls_service(c)->write(c->tls, iov, n);
}

static void stream_tls_tell(struct reactor_task *t)
{
    struct conn *c = CONTAINER(t, struct stream_tls_medium, told)->conn;

    if (!c->dropped)
        c->on_events(c, EPOLLIN);
}

/* The kernel reports no event for bytes that the session has read already. */
static int stream_tls_hear(struct conn *c, enum conn_hears what)
{
    struct stream_tls_medium *m = c->medium;
    const int e = stream_socket.hear(c, what);

    if (!e && what == HEARS_ALL && !stream_tls_service(c)->drained(c->tls))
        reactor_post(&c->ep->reactor, &m->told);
    return e;
}

static bool stream_tls_sleep(struct conn *c, struct conn_sleep *ret)
{
    *ret = (struct conn_sleep){ .fd = c->source.fd };
    return stream_tls_service(c)->drained(c->tls);
}

static tenrec_status stream_tls_shake(struct conn *c, tenrec_error *err)
{
    return stream_tls_service(c)->shake(c->tls, err);
}

static void stream_tls_free(struct conn *c)
{
    stream_tls_service(c)->close(c->tls);
    free(c->medium);
    stream_socket.free(c);
}

static const struct stream stream_tls = {
    .read = stream_tls_read,
    .write = stream_tls_write,
    .hear = stream_tls_hear,
    .want_room = socket_want_room,
    .sleep = stream_tls_sleep,
    .shake = stream_tls_shake,
    .connected = socket_connected,
    .cut = socket_cut,
    .free = stream_tls_free,
};

bool stream_tls_begin(struct conn *c, bool dials)
{
    struct stream_tls_medium *m = calloc(1, sizeof *m);
    tenrec_error why;

    if (!m)
        return false;
    if (c->ep->tls->open(c->ep->self, c->source.fd, dials, &c->tls, &why)) {
        endpoint_log(c->ep, TENREC_LOG_WARN, "no TLS for a connection: %s", why.text);
        free(m);
        return false;
    }
    m->conn = c;
    m->told.run = stream_tls_tell;
    c->medium = m;
    c->stream = &stream_tls;
    return true;
}
