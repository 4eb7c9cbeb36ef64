/* SPDX-License-Identifier: Apache-2.0 */
/* zeromq.c - ZeroMQ: REQ and REP, with many in flight DEALER and ROUTER.
 *
 *     zeromq_peer latency|rate|bandwidth sleep ipc|tcp
 *
 * `bandwidth` sends without copying, and receives into new memory each time, which
 * is freed. */
#include "../driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define ADDRESS_MAX 256

struct zeromq {
    void *context, *socket;
    unsigned char *data;
};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench: zeromq: %s: %s\n", what, zmq_strerror(zmq_errno()));
    _exit(1);
}

static struct zeromq *make(const struct trial *t, int one, int many)
{
    struct zeromq *z = calloc(1, sizeof *z);

    if (!z)
        pair_die("calloc");
    z->context = zmq_ctx_new();
    z->socket = zmq_socket(z->context, strcmp(t->mode, "rate") != 0 ? one : many);
    must(z->socket, "zmq_socket");
    return z;
}

/* ---- the callee -------------------------------------------------------------------------- */

/* A message of one byte is the last. */
static int serve_one_by_one(struct trial *t, void *socket)
{
    unsigned char answer[PAIR_SMALL] = { 1 };
    bool first = t->size > PAIR_SMALL;

    for (int n = 0; n != 1;) {
        zmq_msg_t m;

        zmq_msg_init(&m);
        must((n = zmq_msg_recv(&m, socket, 0)) >= 0, "receive");
        if (first)
            pair_expect(t->peer, zmq_msg_data(&m), t->size);
        first = false;
        zmq_msg_close(&m);
        must(zmq_send(socket, answer, sizeof answer, 0) >= 0, "send");
    }
    return 0;
}

static int serve_many(void *socket)
{
    for (int n = 0; n != 1;) {
        zmq_msg_t who, m;

        zmq_msg_init(&who);
        zmq_msg_init(&m);
        must(zmq_msg_recv(&who, socket, 0) >= 0, "receive");
        must((n = zmq_msg_recv(&m, socket, 0)) >= 0, "receive");
        must(zmq_msg_send(&who, socket, ZMQ_SNDMORE) >= 0, "send");
        must(zmq_msg_send(&m, socket, 0) >= 0, "send");
    }
    return 0;
}

static int serve(struct trial *t)
{
    struct zeromq *z = make(t, ZMQ_REP, ZMQ_ROUTER);
    char address[ADDRESS_MAX];
    size_t n = sizeof address;

    /* "*": a free port or path. */
    must(!zmq_bind(z->socket, !strcmp(t->via, "tcp") ? "tcp://127.0.0.1:*" : "ipc://*"), "bind");
    must(!zmq_getsockopt(z->socket, ZMQ_LAST_ENDPOINT, address, &n), "address");
    driver_say(t, address, n);
    (void)(strcmp(t->mode, "rate") ? serve_one_by_one(t, z->socket) : serve_many(z->socket));
    zmq_close(z->socket);
    zmq_ctx_term(z->context); /* waits until the last answer is sent */
    return 0;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static void keep(void *data, void *arg)
{
    (void)data;
    (void)arg;
}

static void start(struct trial *t)
{
    struct zeromq *z = make(t, ZMQ_REQ, ZMQ_DEALER);
    char address[ADDRESS_MAX];

    driver_hear(t, address, sizeof address);
    must(!zmq_connect(z->socket, address), "connect");
    z->data = pair_memory(t->size, false);
    pair_fill(z->data, t->size);
    t->state = z;
}

static void receive(struct zeromq *z)
{
    unsigned char answer[PAIR_SMALL];

    must(zmq_recv(z->socket, answer, sizeof answer, 0) >= 0, "receive");
}

static void call(struct trial *t)
{
    struct zeromq *z = t->state;
    zmq_msg_t m;

    if (t->size > PAIR_SMALL) {
        zmq_msg_init_data(&m, z->data, t->size, keep, NULL);
        must(zmq_msg_send(&m, z->socket, 0) >= 0, "send");
    } else {
        must(zmq_send(z->socket, z->data, t->size, 0) >= 0, "send");
    }
    receive(z);
}

static void flood(struct trial *t, size_t calls)
{
    struct zeromq *z = t->state;
    size_t sent = 0;

    for (size_t got = 0; got < calls; got++) {
        for (; sent < calls && sent - got < PAIR_INFLIGHT; sent++)
            must(zmq_send(z->socket, z->data, PAIR_SMALL, 0) >= 0, "send");
        receive(z);
    }
}

static void end(struct trial *t)
{
    struct zeromq *z = t->state;

    must(zmq_send(z->socket, "", 1, 0) >= 0, "send");
    receive(z);
    zmq_close(z->socket);
    zmq_ctx_term(z->context);
}

#define ZEROMQ_WAY(name)                                                                           \
    {                                                                                              \
        .peer = "zeromq", .via = name, .modes = "latency rate bandwidth", .progress = "sleep",     \
        .serve = serve, .open = start, .call = call, .flood = flood, .close = end                  \
    }

int main(int argc, char **argv)
{
    const struct way ways[] = { ZEROMQ_WAY("ipc"), ZEROMQ_WAY("tcp") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
