/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_peer.h"

#include "core/backend/account.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/store/store_gate.h"
#include "security/proof/security.h"
#include "security/tls/tls.h"

#include <stdlib.h>
#include <string.h>

#define MAX_UNREAD ((size_t)1 << 20) /* bytes of answers that a peer may leave unread */

struct pending_write {
    uv_write_t req;
    struct store_peer *peer;
    uint8_t data[];
};

static void on_peer_closed(uv_handle_t *handle)
{
    struct store_peer *peer = handle->data;
    struct store_peers *peers = peer->peers;

    store_gate_drop(peer->gate);
    store_session_drop(peer->session);
    account_close(peer->source);
    tls_session_close(peer->tls);
    free(peer);
    peers->count(peers->arg, -1);
}

bool store_peer_is_closing(const struct store_peer *peer)
{
    return uv_is_closing((const uv_handle_t *)&peer->tcp);
}

static void peer_close(struct store_peer *peer)
{
    if (store_peer_is_closing(peer))
        return;
    store_peers_remove(peer->peers, peer);
    store_peers_take_behind(peer->peers, peer);
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

void store_peer_drop(struct store_peer *peer)
{
    store_session_drop(peer->session);
    peer->session = NULL;
    peer_close(peer);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct store_peer *peer = handle->data;

    (void)suggested;
    *buf = uv_buf_init(peer->peers->room, STORE_PEERS_READ);
}

static bool peer_is_full(const struct store_peer *peer)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&peer->tcp) > MAX_UNREAD;
}

struct sockaddr_storage store_peer_address(const struct store_peer *peer)
{
    struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
    int len = sizeof a;

    uv_tcp_getpeername(&peer->tcp, (struct sockaddr *)&a, &len);
    return a;
}

static void peer_name(const struct store_peer *peer, char *ret, size_t room)
{
    const struct sockaddr_storage a = store_peer_address(peer);

    if (uv_ip_name((const struct sockaddr *)&a, ret, room) != 0)
        snprintf(ret, room, "an unknown address");
}

void store_peer_log(const struct store_peer *peer, const char *why)
{
    char name[INET6_ADDRSTRLEN + 16];

    peer_name(peer, name, sizeof name);
    log_line(TENREC_LOG_WARN, "store", "closed a connection of %s: %s", name, why);
}

void store_peer_abort(struct store_peer *peer, const char *why)
{
    if (store_peer_is_closing(peer))
        return;
    store_peer_log(peer, why);
    /* Not dropped here: the session is still running, and uv reports the close later. */
    peer_close(peer);
}

bool store_peer_may_go_on(const struct store_peer *peer)
{
    return !store_peer_is_closing(peer) && !peer_is_full(peer) && !peer->behind;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

void store_peer_take_turn(struct store_peer *peer)
{
    if (!store_peer_may_go_on(peer))
        return;
    store_session_resume(peer->session);
    if (!peer->paused || !store_peer_may_go_on(peer))
        return;
    if (peer->tls)
        store_peer_tls_read(peer); /* what it had received before the pause */
    if (store_peer_may_go_on(peer)) {
        peer->paused = false;
        uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
    }
}

static void on_written(uv_write_t *req, int status)
{
    struct pending_write *w = req->data;
    struct store_peer *peer = w->peer;

    free(w);
    if (store_peer_is_closing(peer))
        return;
    if (status < 0) {
        store_peer_drop(peer);
        return;
    }
    if (!peer->session)
        return;
    store_session_unread(peer->session, uv_stream_get_write_queue_size((uv_stream_t *)&peer->tcp));
    store_peer_take_turn(peer);
}

void store_peer_send(struct store_peer *peer, const void *data, size_t len)
{
    uv_stream_t *stream = (uv_stream_t *)&peer->tcp;
    struct pending_write *w;
    uv_buf_t buf;
    int sent = 0;

    if (store_peer_is_closing(peer))
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
        store_peer_abort(peer, "no memory for the peer's answer");
        return;
    }
    memcpy(w->data, (const char *)data + sent, len);
    w->peer = peer;
    w->req.data = w;
    buf = uv_buf_init((char *)w->data, (unsigned)len);
    if (uv_write(&w->req, stream, &buf, 1, on_written) != 0) {
        free(w);
        store_peer_abort(peer, "cannot write to the connection");
        return;
    }
    if (peer->session)
        store_session_unread(peer->session, uv_stream_get_write_queue_size(stream));
}

static void session_write(void *arg, const void *data, size_t len)
{
    struct store_peer *peer = arg;

    if (peer->tls)
        store_peer_tls_write(peer, data, len);
    else
        store_peer_send(peer, data, len);
}

static bool session_full(void *arg)
{
    return peer_is_full(arg);
}

static void session_close(void *arg, const char *why)
{
    store_peer_abort(arg, why);
}

static void session_behind(void *arg)
{
    struct store_peer *peer = arg;

    if (!store_peer_is_closing(peer))
        store_peers_put_behind(peer->peers, peer);
}

static const struct store_session_ops session_ops = {
    .write = session_write,
    .full = session_full,
    .close = session_close,
    .behind = session_behind,
};

/* ---- the gate ------------------------------------------------------------------- */

static tenrec_status gate_check_plain(void *arg, enum security_plain plain, tenrec_error *err)
{
    const struct store_peer *peer = arg;
    const struct sockaddr_storage theirs = store_peer_address(peer);
    struct sockaddr_storage ours = { .ss_family = AF_UNSPEC };
    int len = sizeof ours;

    uv_tcp_getsockname(&peer->tcp, (struct sockaddr *)&ours, &len);
    return plain_peer_check(plain, (const struct sockaddr *)&theirs, (const struct sockaddr *)&ours,
                            err);
}

static void gate_write(void *arg, const void *data, size_t len)
{
    store_peer_send(arg, data, len);
}

static const struct store_gate_ops gate_ops = {
    .write = gate_write,
    .check_plain = gate_check_plain,
};

/* Begins the session of a connection whose gate has opened. */
static tenrec_status peer_admit(struct store_peer *peer, tenrec_error *err)
{
    if (!(peer->session = store_session_new(&peer->peers->hub, &session_ops, peer)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a session");
    source_admit(peer->source);
    peer->tls = store_gate_take_tls(peer->gate);
    store_peers_remove(peer->peers, peer);
    store_gate_drop(peer->gate);
    peer->gate = NULL;
    store_peers_add(peer->peers, peer);
    return TENREC_OK;
}

/* Returns the number of bytes that belong to the gate, all if it has closed the connection. */
static size_t peer_read_gate(struct store_peer *peer, const char *data, size_t len)
{
    size_t used = 0;
    tenrec_error why;
    tenrec_status st = store_gate_take(peer->gate, data, len, &used, &why);

    if (store_peer_is_closing(peer))
        return len;
    if (st == TENREC_OK && store_gate_is_open(peer->gate))
        st = peer_admit(peer, &why);
    if (st != TENREC_OK)
        store_peer_abort(peer, why.text);
    return peer->session ? used : len;
}

/* Passes received bytes to the session. */
static void peer_take(struct store_peer *peer, const char *data, size_t len)
{
    if (!peer->tls && len > 0)
        store_session_feed(peer->session, data, len);
    else if (peer->tls && tls_session_feed(peer->tls, data, len, NULL) == TENREC_OK)
        store_peer_tls_read(peer); /* also of what the handshake has left */
    else if (peer->tls)
        store_peer_abort(peer, "no memory for the peer's request");
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct store_peer *peer = stream->data;
    size_t at;

    if (n < 0) {
        store_peer_drop(peer);
        return;
    }
    at = peer->gate ? peer_read_gate(peer, buf->base, (size_t)n) : 0;
    if (!peer->session || store_peer_is_closing(peer))
        return;
    peer_take(peer, buf->base + at, (size_t)n - at);
    if (!store_peer_is_closing(peer) && !store_peer_may_go_on(peer)) {
        peer->paused = true;
        uv_read_stop(stream);
    }
}

bool store_peer_begin(struct store_peer *peer)
{
    struct store_peers *peers = peer->peers;

    if (store_peers_prove(peers))
        peer->gate = store_gate_new(peers->security, &gate_ops, peer);
    else
        peer->session = store_session_new(&peers->hub, &session_ops, peer);
    if (!peer->gate && !peer->session)
        return false;
    store_peers_add(peers, peer);
    uv_tcp_nodelay(&peer->tcp, 1);
    uv_tcp_keepalive(&peer->tcp, 1, 60);
    uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
    return true;
}

void store_peer_refuse(struct store_peer *peer)
{
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}
