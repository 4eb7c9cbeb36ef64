/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_peers.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/store/store_gate.h"
#include "group/store/store_peer.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <utlist.h>

/* Connections whose gate is shut: well above the listener's backlog, for the loop accepts
 * all that wait before it reads from any. Each costs at most 6 KiB. */
#define MAX_STRANGERS STORE_PROOFS
#define MAX_STRANGERS_TLS 2048 /* each with half a handshake of at most 96 KiB */
#define RESERVE 64             /* descriptors */

void store_peers_add(struct store_peers *peers, struct store_peer *peer)
{
    if (peer->gate) {
        DL_PREPEND(peers->strangers, peer);
        peers->n_strangers++;
    } else {
        DL_PREPEND(peers->list, peer);
        peers->n++;
    }
}

void store_peers_remove(struct store_peers *peers, struct store_peer *peer)
{
    if (peer->gate) {
        DL_DELETE(peers->strangers, peer);
        peers->n_strangers--;
    } else {
        DL_DELETE(peers->list, peer);
        peers->n--;
    }
}

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

/* ---- turns ------------------------------------------------------------------------ */

void store_peers_take_behind(struct store_peers *peers, struct store_peer *peer)
{
    if (!peer->behind)
        return;
    peer->behind = false;
    DL_DELETE2(peers->behind, peer, behind_prev, behind_next);
}

/* One turn for each that waits for one now. */
static void on_turns(uv_idle_t *idle)
{
    struct store_peers *peers = idle->data;
    struct store_peer *peer;
    size_t n;

    DL_COUNT2(peers->behind, peer, n, behind_next);
    while (n-- > 0 && (peer = peers->behind)) {
        store_peers_take_behind(peers, peer);
        store_peer_take_turn(peer);
    }
    if (!peers->behind)
        uv_idle_stop(idle);
}

void store_peers_put_behind(struct store_peers *peers, struct store_peer *peer)
{
    if (peer->behind)
        return;
    peer->behind = true;
    DL_APPEND2(peers->behind, peer, behind_prev, behind_next);
    uv_idle_start(&peers->turns, on_turns);
}

static void on_turns_closed(uv_handle_t *idle)
{
    struct store_peers *peers = idle->data;

    peers->count(peers->arg, -1);
}

static void turns_open(struct store_peers *peers, uv_loop_t *loop)
{
    if (peers->has_turns || uv_idle_init(loop, &peers->turns) != 0)
        return;
    peers->has_turns = true;
    peers->turns.data = peers;
    peers->count(peers->arg, 1);
}

static void turns_close(struct store_peers *peers)
{
    if (peers->has_turns)
        uv_close((uv_handle_t *)&peers->turns, on_turns_closed);
    peers->has_turns = false;
}

/* ---- connections ------------------------------------------------------------------- */

static bool drop_stranger(struct store_peers *peers)
{
    struct store_peer *oldest = peers->strangers ? peers->strangers->prev : NULL;

    if (!oldest)
        return false;
    store_peer_log(oldest, "too many connections, and no proof of membership on this one");
    store_peer_drop(oldest);
    return true;
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
    store_peer_log(oldest, "too many connections, and no request on this one");
    store_peer_drop(oldest);
    return true;
}

/* Returns true if an accepted connection may stay. */
static bool has_room(struct store_peers *peers, const struct store_peer *peer)
{
    const size_t most = peers->security && peers->security->tls ? MAX_STRANGERS_TLS : MAX_STRANGERS;

    if (peers->n_strangers < most && !uses_reserve(peer))
        return true;
    if (drop_stranger(peers) || drop_silent(peers))
        return true;
    log_line(
        TENREC_LOG_WARN, "store",
        "refused a connection: %zu are open, and the limit of descriptors leaves no more: raise "
        "it (ulimit -n)",
        peers->n + peers->n_strangers);
    return false;
}

bool store_peers_prove(const struct store_peers *peers)
{
    return peers->security && peers->security->mode != SECURITY_NONE;
}

struct tenrec_account *store_peers_source(const struct sockaddr *from)
{
    static const char owner; /* its address is that of all servers */

    return source_get(&owner, from, 0);
}

/* Returns true if the connection's address may make the server compute another proof. */
static bool may_prove(struct store_peers *peers, struct store_peer *peer)
{
    const struct sockaddr_storage from = store_peer_address(peer);

    if (!store_peers_prove(peers))
        return true;
    peer->source = store_peers_source((const struct sockaddr *)&from);
    if (source_may_prove(peer->source, STORE_PROOFS, clock_now_ns()))
        return true;
    store_peer_log(peer, "too many connections from its address have proved nothing");
    return false;
}

bool store_peers_accept(struct store_peers *peers, uv_stream_t *listener)
{
    struct store_peer *peer = memory_new(1, sizeof *peer);

    turns_open(peers, listener->loop);
    if (!peer || uv_tcp_init(listener->loop, &peer->tcp) != 0) {
        free(peer);
        return false;
    }
    peer->peers = peers;
    peer->tcp.data = peer;
    peers->count(peers->arg, 1);
    /* Accept a connection also to refuse it, so that the listener goes on. */
    if (uv_accept(listener, (uv_stream_t *)&peer->tcp) != 0 || !may_prove(peers, peer) ||
        !has_room(peers, peer) || !store_peer_begin(peer))
        store_peer_refuse(peer);
    return true;
}

void store_peers_drop(struct store_peers *peers)
{
    while (peers->list)
        store_peer_drop(peers->list);
    while (peers->strangers)
        store_peer_drop(peers->strangers);
    turns_close(peers);
}

void store_peers_expire(struct store_peers *peers, uint64_t now_ns)
{
    struct store_peer *oldest;

    store_hub_expire(&peers->hub, now_ns);
    while (peers->strangers && (oldest = peers->strangers->prev) &&
           store_gate_is_late(oldest->gate, now_ns)) {
        store_peer_log(oldest, "no proof of membership after 10 s");
        store_peer_drop(oldest);
    }
}
