/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/resolve.h"
#include "group/store/store_peers.h"

#include <pthread.h>
#include <stdlib.h>
#include <uv.h>

#define MAX_STORE ((size_t)1 << 30) /* bytes of all keys and values */
#define BACKLOG 65535 /* as many as the system allows: all workers may connect at once */
#define RESOLVE_MS 10000
#define EXPIRE_MS 5000 /* between two checks for expired requests */
#define RETRY_MS 100   /* until a connection without memory is accepted again */

/* Everything but `lock`, `open` and `closed` belongs to the loop's thread. */
struct tenrec_store_server {
    struct loop *loop;
    bool own_loop;
    bool listening;
    bool behind; /* a connection is not accepted yet; until then libuv reports no other */
    uv_tcp_t listener;
    uv_timer_t timer; /* open while `listening` was ever true */
    bool has_timer;
    struct address address;
    uint16_t port;
    int result; /* of start_listening */
    pthread_mutex_t lock;
    pthread_cond_t closed; /* open became 0 */
    size_t open;           /* uv handles not closed yet */
    struct store_peers peers;
};

static void count_open(void *arg, int delta)
{
    struct tenrec_store_server *server = arg;

    pthread_mutex_lock(&server->lock);
    server->open += (size_t)delta;
    if (server->open == 0)
        pthread_cond_broadcast(&server->closed);
    pthread_mutex_unlock(&server->lock);
}

static void on_connection(uv_stream_t *listener, int status);

static void on_timer(uv_timer_t *timer)
{
    struct tenrec_store_server *server = timer->data;

    store_peers_expire(&server->peers, clock_now_ns());
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

    if (status < 0)
        log_line(TENREC_LOG_WARN, "store", "cannot accept a connection: %s", uv_strerror(status));
    else if (store_peers_accept(&server->peers, listener))
        start_timer(server);
    else
        accept_later(server);
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
    store_peers_drop(&server->peers);
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
                                struct security *security, struct tenrec_store_server **ret,
                                uint16_t *ret_port, tenrec_error *err)
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
        store_hub_init(&server->peers.hub, MAX_STORE) != TENREC_OK) {
        free(server);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the store's server");
    }
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->closed, NULL);
    server->peers.count = count_open;
    server->peers.arg = server;
    server->peers.security = security ? security_share(security) : NULL;
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

uint64_t store_server_requests(const struct tenrec_store_server *server)
{
    return atomic_load(&server->peers.hub.requests);
}

tenrec_status tenrec_store_server_new(const char *host, uint16_t port,
                                      struct tenrec_store_server **ret, uint16_t *ret_port,
                                      tenrec_error *err)
{
    struct security *security;
    tenrec_status st = security_open_default(CLOCK_NEVER, &security, err);

    *ret = NULL;
    if (ret_port)
        *ret_port = 0;
    if (st != TENREC_OK)
        return st;
    st = store_server_open(NULL, host, port, security, ret, ret_port, err);
    security_drop(security);
    return st;
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
    store_hub_finish(&server->peers.hub);
    security_drop(server->peers.security);
    pthread_cond_destroy(&server->closed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
