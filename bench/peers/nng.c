/* SPDX-License-Identifier: Apache-2.0 */
/* nng.c - nng: REQ and REP; with many in flight a context for each.
 *
 *     nng_peer latency|rate|bandwidth sleep ipc|tcp
 *
 * A large message is copied into nng's message, as any program has to. */
#include "../driver.h"

#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS_MAX 256

static void must(int e, const char *what)
{
    if (!e)
        return;
    fprintf(stderr, "bench: nng: %s: %s\n", what, nng_strerror(e));
    _exit(1);
}

/* One of the messages in flight, on either side. */
struct lane {
    struct nng *owner;
    nng_aio *aio;
    nng_ctx context;
    bool sending;
};

struct nng {
    nng_socket socket;
    unsigned char *data;
    struct lane lane[PAIR_INFLIGHT];
    _Atomic long to_send, to_get;
    sem_t done;
};

static struct nng *make(void (*fn)(void *), const struct trial *t, int (*open_socket)(nng_socket *))
{
    struct nng *g = calloc(1, sizeof *g);

    if (!g)
        pair_die("calloc");
    sem_init(&g->done, 0, 0);
    must(open_socket(&g->socket), "open");
    must(nng_socket_set_size(g->socket, NNG_OPT_RECVMAXSZ, 0), NNG_OPT_RECVMAXSZ);
    for (size_t i = 0; i < PAIR_INFLIGHT && !strcmp(t->mode, "rate"); i++) {
        struct lane *l = &g->lane[i];

        l->owner = g;
        must(nng_aio_alloc(&l->aio, fn, l), "nng_aio_alloc");
        must(nng_ctx_open(&l->context, g->socket), "nng_ctx_open");
    }
    return g;
}

static nng_msg *new_message(const void *data, size_t n)
{
    nng_msg *m;

    must(nng_msg_alloc(&m, n), "nng_msg_alloc");
    memcpy(nng_msg_body(m), data, n);
    return m;
}

/* ---- the callee ---------------------------------------------------------------------- */

static void on_served(void *arg)
{
    struct lane *l = arg;

    if (!l->sending && !nng_aio_result(l->aio)) {
        l->sending = true;
        nng_aio_set_msg(l->aio, nng_aio_get_msg(l->aio));
        nng_ctx_send(l->context, l->aio);
        return;
    }
    l->sending = false;
    nng_ctx_recv(l->context, l->aio);
}

static void listen_on(struct trial *t, nng_socket s)
{
    bool tcp = !strcmp(t->via, "tcp");
    char address[ADDRESS_MAX];
    nng_listener l;
    int port;

    snprintf(address, sizeof address, "abstract://bench-nng-%d", (int)getpid());
    must(nng_listener_create(&l, s, tcp ? "tcp://127.0.0.1:0" : address), "listen");
    must(nng_listener_start(l, 0), "listen");
    if (tcp) {
        must(nng_listener_get_int(l, NNG_OPT_TCP_BOUND_PORT, &port), NNG_OPT_TCP_BOUND_PORT);
        snprintf(address, sizeof address, "tcp://127.0.0.1:%d", port);
    }
    driver_say(t, address, strlen(address) + 1);
}

static void serve_one_by_one(struct trial *t, nng_socket s)
{
    static const unsigned char answer[PAIR_SMALL];
    bool first = t->size > PAIR_SMALL;
    nng_msg *m;

    for (;;) {
        bool last;

        must(nng_recvmsg(s, &m, 0), "receive");
        last = nng_msg_len(m) == 1;
        if (first)
            pair_expect(t->peer, nng_msg_body(m), t->size);
        first = false;
        if (t->size > PAIR_SMALL) {
            nng_msg_free(m);
            m = new_message(answer, sizeof answer);
        }
        must(nng_sendmsg(s, m, 0), "send");
        if (last)
            return;
    }
}

static int serve(struct trial *t)
{
    struct nng *g = make(on_served, t, nng_rep0_open);
    char byte;

    listen_on(t, g->socket);
    if (strcmp(t->mode, "rate") != 0)
        serve_one_by_one(t, g->socket);
    else
        for (size_t i = 0; i < PAIR_INFLIGHT; i++)
            nng_ctx_recv(g->lane[i].context, g->lane[i].aio);
    /* nng's threads still write: wait until the caller has received everything. */
    while (pair_read(t->fd, &byte, 1))
        ;
    return 0;
}

/* ---- the caller ------------------------------------------------------------------------ */

static void send_one(struct lane *l)
{
    nng_aio_set_msg(l->aio, new_message(l->owner->data, PAIR_SMALL));
    l->sending = true;
    nng_ctx_send(l->context, l->aio);
}

static void on_called(void *arg)
{
    struct lane *l = arg;
    struct nng *g = l->owner;

    must(nng_aio_result(l->aio), "call");
    if (l->sending) {
        l->sending = false;
        nng_ctx_recv(l->context, l->aio);
        return;
    }
    nng_msg_free(nng_aio_get_msg(l->aio));
    if (atomic_fetch_sub(&g->to_send, 1) > 0)
        send_one(l);
    if (atomic_fetch_sub(&g->to_get, 1) == 1)
        sem_post(&g->done);
}

static void start(struct trial *t)
{
    struct nng *g = make(on_called, t, nng_req0_open);
    char address[ADDRESS_MAX];

    driver_hear(t, address, sizeof address);
    must(nng_dial(g->socket, address, NULL, 0), "dial");
    g->data = pair_memory(t->size, false);
    pair_fill(g->data, t->size);
    t->state = g;
}

static void call(struct trial *t)
{
    struct nng *g = t->state;
    nng_msg *m = new_message(g->data, t->size);

    must(nng_sendmsg(g->socket, m, 0), "send");
    must(nng_recvmsg(g->socket, &m, 0), "receive");
    nng_msg_free(m);
}

static void flood(struct trial *t, size_t calls)
{
    struct nng *g = t->state;

    atomic_store(&g->to_send, (long)(calls - PAIR_INFLIGHT));
    atomic_store(&g->to_get, (long)calls);
    for (size_t i = 0; i < PAIR_INFLIGHT; i++)
        send_one(&g->lane[i]);
    while (sem_wait(&g->done))
        ;
}

static void end(struct trial *t)
{
    struct nng *g = t->state;
    nng_msg *m;

    if (!strcmp(t->mode, "rate"))
        return;
    must(nng_sendmsg(g->socket, new_message("", 1), 0), "send");
    must(nng_recvmsg(g->socket, &m, 0), "receive");
}

#define NNG_WAY(name)                                                                              \
    {                                                                                              \
        .peer = "nng", .via = name, .modes = "latency rate bandwidth", .progress = "sleep",        \
        .serve = serve, .open = start, .call = call, .flood = flood, .close = end                  \
    }

int main(int argc, char **argv)
{
    const struct way ways[] = { NNG_WAY("ipc"), NNG_WAY("tcp") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
