/* SPDX-License-Identifier: Apache-2.0 */
#include "store_server/store_peer.h"

#include "base/memory.h"
#include "runtime/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <utlist.h>

#define MAX_CONNECTIONS 8192
#define MAX_UNREAD ((size_t)1 << 20) /* bytes of answers that a peer may leave unread */
#define RESERVE 64                   /* descriptors */

/* One accepted connection; lives until uv has closed its handle. */
struct store_peer {
    uv_tcp_t tcp;
    struct store_peers *peers;
    struct store_session *session;
    struct store_peer *prev, *next;
    bool paused; /* not read from while its answers pile up */
};

struct pending_write {
    uv_write_t req;
    struct store_peer *peer;
    uint8_t data[];
};

static void on_peer_closed(uv_handle_t *handle)
{
    struct store_peer *peer = handle->data;
    struct store_peers *peers = peer->peers;

    store_session_drop(peer->session);
    free(peer);
    peers->count(peers->arg, -1);
}

static void peer_close(struct store_peer *peer)
{
    struct store_peers *peers = peer->peers;

    if (uv_is_closing((uv_handle_t *)&peer->tcp))
        return;
    DL_DELETE(peers->list, peer);
    peers->n--;
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

/* Closes at once, without sending. Not from inside the session, which may be the running one. */
static void peer_drop(struct store_peer *peer)
{
    store_session_drop(peer->session);
    peer->session = NULL;
    peer_close(peer);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct store_peer *peer = handle->data;

    (void)suggested;
    *buf = uv_buf_init(peer->peers->room, STORE_PEER_READ);
}

static bool session_full(void *arg)
{
    struct store_peer *peer = arg;

    return uv_stream_get_write_queue_size((uv_stream_t *)&peer->tcp) > MAX_UNREAD;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct store_peer *peer = stream->data;

    if (n < 0) {
        peer_drop(peer);
        return;
    }
    if (n == 0)
        return;
    store_session_feed(peer->session, buf->base, (size_t)n);
    if (!uv_is_closing((uv_handle_t *)stream) && session_full(peer)) {
        peer->paused = true;
        uv_read_stop(stream);
    }
}

static void peer_name(const struct store_peer *peer, char *ret, size_t room)
{
    struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
    int len = sizeof a;

    if (uv_tcp_getpeername(&peer->tcp, (struct sockaddr *)&a, &len) != 0 ||
        uv_ip_name((struct sockaddr *)&a, ret, room) != 0)
        snprintf(ret, room, "an unknown address");
}

static void peer_log(const struct store_peer *peer, const char *why)
{
    char name[INET6_ADDRSTRLEN + 16];

    peer_name(peer, name, sizeof name);
    log_line(TENREC_LOG_WARN, "store", "closed a connection of %s: %s", name, why);
}

static void session_close(void *arg, const char *why)
{
    struct store_peer *peer = arg;

    if (uv_is_closing((uv_handle_t *)&peer->tcp))
        return;
    peer_log(peer, why);
    /* Not dropped here: the session is still running, and uv reports the close later. */
    peer_close(peer);
}

static void on_written(uv_write_t *req, int status)
{
    struct pending_write *w = req->data;
    struct store_peer *peer = w->peer;

    free(w);
    if (uv_is_closing((uv_handle_t *)&peer->tcp))
        return;
    if (status < 0) {
        peer_drop(peer);
        return;
    }
    store_session_unread(peer->session, uv_stream_get_write_queue_size((uv_stream_t *)&peer->tcp));
    if (uv_is_closing((uv_handle_t *)&peer->tcp) || session_full(peer))
        return;
    store_session_resume(peer->session);
    if (peer->paused && !uv_is_closing((uv_handle_t *)&peer->tcp) && !session_full(peer)) {
        peer->paused = false;
        uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
    }
}

static void session_write(void *arg, const void *data, size_t len)
{
    struct store_peer *peer = arg;
    uv_stream_t *stream = (uv_stream_t *)&peer->tcp;
    struct pending_write *w;
    uv_buf_t buf;
    int sent = 0;

    if (uv_is_closing((uv_handle_t *)stream))
        return;
    if (uv_stream_get_write_queue_size(stream) == 0) {
        /* uv_buf_t has no const; uv only reads from it. */
        buf = uv_buf_init((char *)(uintptr_t)data, (unsigned)len);
        sent = uv_try_write(stream, &buf, 1);
        if (sent < 0)
            sent = 0; /* the write below reports a broken connection */
    }
    if ((size_t)sent == len)
        return;
    len -= (size_t)sent;
    if (!(w = memory_new(1, sizeof *w + len))) {
        session_close(peer, "no memory for the peer's answer");
        return;
    }
    memcpy(w->data, (const char *)data + sent, len);
    w->peer = peer;
    w->req.data = w;
    buf = uv_buf_init((char *)w->data, (unsigned)len);
    if (uv_write(&w->req, stream, &buf, 1, on_written) != 0) {
        free(w);
        session_close(peer, "cannot write to the connection");
        return;
    }
    store_session_unread(peer->session, uv_stream_get_write_queue_size(stream));
}

static const struct store_session_ops session_ops = {
    .write = session_write,
    .full = session_full,
    .close = session_close,
};

/* A quarter of the process's descriptors, at most RESERVE, is kept from peers. The kernel gives the
 * lowest free number, so a high one shows how many are open. */
static bool uses_reserve(const struct store_peer *peer)
{
    struct rlimit limit;
    uv_os_fd_t fd;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        uv_fileno((const uv_handle_t *)&peer->tcp, &fd) != 0)
        return false;
    return (rlim_t)fd >=
           limit.rlim_cur - (limit.rlim_cur / 4 < RESERVE ? limit.rlim_cur / 4 : RESERVE);
}

/* Closes the oldest connection without a request. Returns false if there is none. */
static bool drop_silent(struct store_peers *peers)
{
    struct store_peer *oldest = NULL;

    for (struct store_peer *p = peers->list; p; p = p->next)
        if (!store_session_has_spoken(p->session))
            oldest = p;
    if (!oldest)
        return false;
    peer_log(oldest, "too many connections, and no request on this one");
    peer_drop(oldest);
    return true;
}

/* Returns true if an accepted connection may stay. */
static bool has_room(struct store_peers *peers, const struct store_peer *peer)
{
    if ((peers->n < MAX_CONNECTIONS && !uses_reserve(peer)) || drop_silent(peers))
        return true;
    log_line(TENREC_LOG_WARN, "store",
             "refused a connection: %zu are open (at most %d, or what the limit of descriptors "
             "leaves)",
             peers->n, MAX_CONNECTIONS);
    return false;
}

bool store_peer_accept(struct store_peers *peers, uv_stream_t *listener)
{
    struct store_peer *peer = memory_new(1, sizeof *peer);

    if (!peer || uv_tcp_init(listener->loop, &peer->tcp) != 0) {
        free(peer);
        return false;
    }
    peer->peers = peers;
    peer->tcp.data = peer;
    peers->count(peers->arg, 1);
    /* Accept a connection also to refuse it, so that the listener goes on. */
    if (uv_accept(listener, (uv_stream_t *)&peer->tcp) != 0 || !has_room(peers, peer) ||
        !(peer->session = store_session_new(&peers->hub, &session_ops, peer))) {
        uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
        return true;
    }
    DL_PREPEND(peers->list, peer);
    peers->n++;
    uv_tcp_nodelay(&peer->tcp, 1);
    uv_tcp_keepalive(&peer->tcp, 1, 60);
    uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
    return true;
}

void store_peers_drop(struct store_peers *peers)
{
    while (peers->list)
        peer_drop(peers->list);
}
