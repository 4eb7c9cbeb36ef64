/* SPDX-License-Identifier: Apache-2.0 */
#include "store_server/store_tcp_server.h"

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/log.h"
#include "runtime/resolve.h"
#include "store_server/store_session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <utlist.h>
#include <uv.h>

#define MAX_CONNECTIONS 8192
#define MAX_UNREAD ((size_t)1 << 20) /* bytes of answers that a peer may leave unread */
#define MAX_STORE ((size_t)1 << 30)  /* bytes of all keys and values */
#define READ_ROOM ((size_t)64 << 10)
#define BACKLOG 1024
#define RESERVE 64 /* descriptors */
#define RESOLVE_MS 10000
#define EXPIRE_MS 5000 /* between two checks for expired requests */
#define RETRY_MS 100   /* until a connection without memory is accepted again */

/* One accepted connection; lives until uv has closed its handle. */
struct store_peer {
    uv_tcp_t tcp;
    struct tenrec_store_server *server;
    struct store_session *session;
    struct store_peer *prev, *next;
    bool paused; /* not read from while its answers pile up */
};

/* Everything but `lock`, `open` and `closed` belongs to the loop's thread. */
struct tenrec_store_server {
    struct loop *loop;
    bool own_loop;
    bool listening;
    bool behind; /* a connection is not accepted yet; until then libuv reports no other */
    uv_tcp_t listener;
    struct store_hub hub;
    struct store_peer *peers;
    size_t n_peers;
    uv_timer_t timer; /* open while `listening` was ever true */
    bool has_timer;
    struct address address;
    uint16_t port;
    int result; /* of start_listening */
    pthread_mutex_t lock;
    pthread_cond_t closed; /* open became 0 */
    size_t open;           /* uv handles not closed yet */
    char room[READ_ROOM];  /* each read is used up before the next */
};

struct pending_write {
    uv_write_t req;
    struct store_peer *peer;
    uint8_t data[];
};

static void count_open(struct tenrec_store_server *server, int delta)
{
    pthread_mutex_lock(&server->lock);
    server->open += (size_t)delta;
    if (server->open == 0)
        pthread_cond_broadcast(&server->closed);
    pthread_mutex_unlock(&server->lock);
}

static void on_peer_closed(uv_handle_t *handle)
{
    struct store_peer *peer = handle->data;
    struct tenrec_store_server *server = peer->server;

    store_session_drop(peer->session);
    free(peer);
    count_open(server, -1);
}

static void peer_close(struct store_peer *peer)
{
    struct tenrec_store_server *server = peer->server;

    if (uv_is_closing((uv_handle_t *)&peer->tcp))
        return;
    DL_DELETE(server->peers, peer);
    server->n_peers--;
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
    *buf = uv_buf_init(peer->server->room, READ_ROOM);
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
static bool drop_silent(struct tenrec_store_server *server)
{
    struct store_peer *oldest = NULL;

    for (struct store_peer *p = server->peers; p; p = p->next)
        if (!store_session_has_spoken(p->session))
            oldest = p;
    if (!oldest)
        return false;
    peer_log(oldest, "too many connections, and no request on this one");
    peer_drop(oldest);
    return true;
}

/* Returns true if an accepted connection may stay. */
static bool has_room(struct tenrec_store_server *server, const struct store_peer *peer)
{
    if ((server->n_peers < MAX_CONNECTIONS && !uses_reserve(peer)) || drop_silent(server))
        return true;
    log_line(TENREC_LOG_WARN, "store",
             "refused a connection: %zu are open (at most %d, or what the limit of descriptors "
             "leaves)",
             server->n_peers, MAX_CONNECTIONS);
    return false;
}

static void on_connection(uv_stream_t *listener, int status);

static void on_timer(uv_timer_t *timer)
{
    struct tenrec_store_server *server = timer->data;

    store_hub_expire(&server->hub, clock_now_ns());
    if (server->behind && server->listening) {
        server->behind = false;
        on_connection((uv_stream_t *)&server->listener, 0);
    }
}

/* The timer is needed from the first connection on. */
static void start_timer(struct tenrec_store_server *server)
{
    if (server->has_timer || uv_timer_init(loop_uv(server->loop), &server->timer) != 0)
        return;
    server->has_timer = true;
    server->timer.data = server;
    count_open(server, 1);
    uv_timer_start(&server->timer, on_timer, EXPIRE_MS, EXPIRE_MS);
}

static void accept_later(struct tenrec_store_server *server)
{
    server->behind = true;
    start_timer(server);
    if (server->has_timer)
        uv_timer_start(&server->timer, on_timer, RETRY_MS, EXPIRE_MS);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct tenrec_store_server *server = listener->data;
    struct store_peer *peer;

    if (status < 0) {
        log_line(TENREC_LOG_WARN, "store", "cannot accept a connection: %s", uv_strerror(status));
        return;
    }
    if (!(peer = memory_new(1, sizeof *peer)) ||
        uv_tcp_init(loop_uv(server->loop), &peer->tcp) != 0) {
        free(peer);
        accept_later(server);
        return;
    }
    peer->server = server;
    peer->tcp.data = peer;
    count_open(server, 1);
    /* Accept a connection also to refuse it, so that the listener goes on. */
    if (uv_accept(listener, (uv_stream_t *)&peer->tcp) != 0 || !has_room(server, peer) ||
        !(peer->session = store_session_new(&server->hub, &session_ops, peer))) {
        uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
        return;
    }
    DL_PREPEND(server->peers, peer);
    server->n_peers++;
    start_timer(server);
    uv_tcp_nodelay(&peer->tcp, 1);
    uv_tcp_keepalive(&peer->tcp, 1, 60);
    uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
}

static void on_own_closed(uv_handle_t *handle)
{
    count_open(handle->data, -1);
}

static void stop_on_loop(void *arg)
{
    struct tenrec_store_server *server = arg;

    if (server->listening)
        uv_close((uv_handle_t *)&server->listener, on_own_closed);
    server->listening = false;
}

static void listen_on_loop(void *arg)
{
    struct tenrec_store_server *server = arg;
    struct sockaddr_storage bound;
    int len = sizeof bound, r;

    server->result = uv_tcp_init(loop_uv(server->loop), &server->listener);
    if (server->result != 0)
        return;
    server->listener.data = server;
    count_open(server, 1);
    server->listening = true;
    r = uv_tcp_bind(&server->listener, (const struct sockaddr *)&server->address.addr, 0);
    if (r == 0)
        r = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
    if (r == 0)
        r = uv_tcp_getsockname(&server->listener, (struct sockaddr *)&bound, &len);
    server->result = r;
    if (r != 0) {
        stop_on_loop(server);
        return;
    }
    /* The port has the same offset in both families. */
    server->port = ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port);
}

static void close_on_loop(void *arg)
{
    struct tenrec_store_server *server = arg;

    stop_on_loop(server);
    if (server->has_timer)
        uv_close((uv_handle_t *)&server->timer, on_own_closed);
    server->has_timer = false;
    while (server->peers)
        peer_drop(server->peers);
}

/* Listens at the first address that works. */
static void listen_at(struct tenrec_store_server *server, const struct address *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        server->address = list[i];
        loop_call(server->loop, listen_on_loop, server);
        if (server->result == 0)
            return;
    }
}

tenrec_status store_server_open(struct loop *loop, const char *host, uint16_t port,
                                struct tenrec_store_server **ret, uint16_t *ret_port,
                                tenrec_error *err)
{
    bool any = !host || !*host;
    struct tenrec_store_server *server;
    struct address list[RESOLVE_MAX];
    tenrec_status st;
    size_t n = 0;

    st = resolve_host(any ? "::" : host, port, clock_deadline_ms(RESOLVE_MS), list, &n, err);
    if (st != TENREC_OK)
        return st;
    if (!(server = memory_new(1, sizeof *server)) ||
        store_hub_init(&server->hub, MAX_STORE) != TENREC_OK) {
        free(server);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the store's server");
    }
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->closed, NULL);
    server->loop = loop;
    server->own_loop = !loop;
    if (!loop && (st = loop_open(&server->loop, err)) != TENREC_OK)
        goto err_drop;
    listen_at(server, list, n);
    /* A machine without IPv6. */
    if (any && (server->result == UV_EAFNOSUPPORT || server->result == UV_EADDRNOTAVAIL) &&
        resolve_host("0.0.0.0", port, CLOCK_NEVER, list, &n, err) == TENREC_OK)
        listen_at(server, list, n);
    if (server->result == 0) {
        *ret = server;
        if (ret_port)
            *ret_port = server->port;
        return TENREC_OK;
    }
    st = tenrec_fail_errno(err, TENREC_EOS, -server->result, "cannot serve a store at %s:%u",
                           any ? "*" : host, port);
err_drop:
    tenrec_store_server_drop(server);
    return st;
}

void store_server_stop_listening(struct tenrec_store_server *server)
{
    loop_call(server->loop, stop_on_loop, server);
}

tenrec_status tenrec_store_server_new(const char *host, uint16_t port,
                                      struct tenrec_store_server **ret, uint16_t *ret_port,
                                      tenrec_error *err)
{
    return store_server_open(NULL, host, port, ret, ret_port, err);
}

void tenrec_store_server_drop(struct tenrec_store_server *server)
{
    if (!server)
        return;
    if (server->loop)
        loop_call(server->loop, close_on_loop, server);
    pthread_mutex_lock(&server->lock);
    while (server->open > 0)
        pthread_cond_wait(&server->closed, &server->lock);
    pthread_mutex_unlock(&server->lock);
    if (server->own_loop)
        loop_close(server->loop);
    store_hub_finish(&server->hub);
    pthread_cond_destroy(&server->closed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
