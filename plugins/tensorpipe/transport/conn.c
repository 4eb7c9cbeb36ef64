/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - buffered reading from one connection. */
#include "transport/conn.h"
#include "endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void conn_free(struct reactor_task *t)
{
    struct conn *c = CONTAINER(t, struct conn, free_task);

    if (c->proof.open)
        c->ep->proof->close(c->ep->self, c->proof.open);
    c->stream->free(c);
    free(c->buf);
    free(c);
}

static void conn_ready(struct reactor_source *s, uint32_t events)
{
    struct conn *c = CONTAINER(s, struct conn, source);

    if (c->dropped)
        return;
    if (c->stream->events)
        events = c->stream->events(c, events);
    if (events)
        c->on_events(c, events);
}

struct conn *conn_new(struct endpoint *ep, const struct transport *transport,
                      const struct stream *stream, int fd, const union transport_address *peer)
{
    struct conn *c = calloc(1, sizeof *c);

    if (!c) {
        close(fd);
        return NULL;
    }
    c->ep = ep;
    c->transport = transport;
    c->stream = stream;
    c->source.fd = fd;
    c->source.ready = conn_ready;
    c->role = CONN_UNKNOWN;
    c->peer = *peer;
    c->free_task.run = conn_free;
    return c;
}

void conn_drop(struct conn *c)
{
    if (!c)
        return;
    c->dropped = true;
    reactor_disarm(&c->timer);
    if (c->stream->drop)
        c->stream->drop(c);
    else
        c->stream->hear(c, HEARS_NOTHING);
    reactor_defer(&c->ep->reactor, &c->free_task);
}

bool conn_reserve(struct conn *c, size_t need)
{
    unsigned char *bigger;
    size_t cap = CONN_BUFFER;

    if (c->pos + need <= c->cap)
        return true;
    if (c->buf && c->pos) {
        memmove(c->buf, c->buf + c->pos, conn_buffered(c));
        c->end -= c->pos;
        c->pos = 0;
        if (need <= c->cap)
            return true;
    }
    if (cap < need)
        cap = need;
    bigger = realloc(c->buf, cap);
    if (!bigger)
        return false;
    c->buf = bigger;
    c->cap = cap;
    return true;
}

bool conn_tls_has_more(const struct conn *c)
{
    return !c->ep->tls->drained(c->tls);
}

void conn_shrink(struct conn *c)
{
    if (c->cap > CONN_BUFFER && c->pos == c->end) {
        free(c->buf);
        c->buf = NULL;
        c->cap = c->pos = c->end = 0;
    }
}

ssize_t conn_read_any(struct conn *c, const struct iovec *lead, int n_lead, bool wait,
                      bool *ret_short, int *ret_errno)
{
    struct iovec iov[3];
    size_t lead_len = 0, room;

    conn_shrink(c);
    if (c->end == c->cap && !conn_reserve(c, conn_buffered(c) + 1)) {
        *ret_errno = ENOMEM;
        return -1;
    }
    for (int i = 0; i < n_lead; i++) {
        iov[i] = lead[i];
        lead_len += lead[i].iov_len;
    }
    room = c->cap - c->end;
    if (lead_len > CONN_LEAD_MAX && !c->stream->bounded) {
        iov[n_lead - 1].iov_len -= lead_len - CONN_LEAD_MAX;
        return conn_came(c, c->stream->read(c, iov, n_lead, wait), CONN_LEAD_MAX, CONN_LEAD_MAX,
                         ret_short, ret_errno);
    }
    iov[n_lead] = (struct iovec){ c->buf + c->end, room };
    return conn_came(c, c->stream->read(c, iov, n_lead + 1, wait), lead_len + room, lead_len,
                     ret_short, ret_errno);
}

void conn_take(struct conn *c, void *to, uint64_t len, uint64_t *got)
{
    size_t n = conn_buffered(c);

    if (n > len - *got)
        n = (size_t)(len - *got);
    if (to && n)
        memcpy((char *)to + *got, c->buf + c->pos, n);
    c->pos += n;
    *got += n;
}

enum frame conn_frame(struct conn *c, uint64_t max_len, const unsigned char **ret_body,
                      size_t *ret_len)
{
    uint64_t len;

    if (conn_buffered(c) < FRAME_HEAD)
        return conn_reserve(c, FRAME_HEAD) ? FRAME_PARTIAL : FRAME_NO_MEMORY;
    len = get_le64(c->buf + c->pos);
    *ret_len = (size_t)len;
    if (len > max_len)
        return FRAME_TOO_BIG;
    if (conn_buffered(c) - FRAME_HEAD < len)
        return conn_reserve(c, FRAME_HEAD + (size_t)len) ? FRAME_PARTIAL : FRAME_NO_MEMORY;
    *ret_body = c->buf + c->pos + FRAME_HEAD;
    return FRAME_WHOLE;
}

int conn_send_small(struct conn *c, const void *data, size_t len)
{
    struct iovec iov = { (void *)(uintptr_t)data, len };
    ssize_t n = c->stream->write(c, &iov, 1);

    if (n < 0)
        return (int)-n;
    return (size_t)n == len ? 0 : EMSGSIZE;
}
