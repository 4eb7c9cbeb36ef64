/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store_client.c - what the server of a TCP store answers its clients.
 *
 * The connections are socket pairs, the clock belongs to the target: each event of the server
 * happens when the client waits for its answer. Input: a byte of options, then operations of
 * the client and, wherever the client waits, events of the server. */
#include "fuzz.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/store.h"
#include "group/store/store_conn.h"
#include "security/proof/security.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEYS = 3, CONNECTIONS_MAX = 64, OPERATIONS_MAX = 64, ROUNDS = 100 };

/* Options: how a right handshake precedes the events of the input, or a client with a secret. */
enum { HANDSHAKE_NONE, HANDSHAKE_2_2, HANDSHAKE_1_13, HANDSHAKE_SECRET };

/* The upper three bits of an event; the lower five are the number of its bytes. */
enum event {
    EVENT_BYTES,
    EVENT_NUMBER, /* one byte as a number of eight */
    EVENT_SILENCE,
    EVENT_END,    /* after its bytes */
    EVENT_RESET,  /* the requests are not read */
    EVENT_REFUSE, /* an end, and the next connection is refused */
    EVENT_CUT,    /* another thread cuts the store's connections */
    EVENT_FILL,   /* one byte, so many times eight */
};

static struct {
    uint64_t now_ns;
    struct fuzz_input handshake, in;
    struct tenrec_store *store;
    int peer[CONNECTIONS_MAX]; /* the server's ends; the index is that of `client` */
    int client[CONNECTIONS_MAX];
    size_t n;
    bool refuses;
} server;

/* ---- the clock ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    *ret = (struct timespec){ .tv_sec = (time_t)(server.now_ns / 1000000000u),
                              .tv_nsec = (long)(server.now_ns % 1000000000u) };
    return 0;
}

int __wrap_nanosleep(const struct timespec *gap, struct timespec *left);
int __wrap_nanosleep(const struct timespec *gap, struct timespec *left)
{
    (void)left;
    server.now_ns += (uint64_t)gap->tv_sec * 1000000000u + (uint64_t)gap->tv_nsec;
    return 0;
}

/* ---- connections ---- */

tenrec_status __wrap_store_conn_open(const struct address *list, size_t n, uint64_t deadline_ns,
                                     struct store_conn **ret, tenrec_error *err);
tenrec_status __wrap_store_conn_open(const struct address *list, size_t n, uint64_t deadline_ns,
                                     struct store_conn **ret, tenrec_error *err)
{
    const bool refused = server.refuses || !server.in.len || server.n == CONNECTIONS_MAX;
    int pair[2];

    (void)list, (void)n, (void)deadline_ns;
    server.refuses = false;
    if (refused)
        return tenrec_fail(err, TENREC_ECONNECT, "cannot connect");
    fuzz_expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    fuzz_expect((*ret = memory_new(1, sizeof **ret)) != NULL);
    (*ret)->fd = server.client[server.n] = pair[0];
    server.peer[server.n++] = pair[1];
    return TENREC_OK;
}

static void peer_read(int peer)
{
    char buf[4096];

    while (recv(peer, buf, sizeof buf, 0) > 0)
        ;
}

/* The latest connection with that descriptor: numbers are used again. */
static int *peer_of(int client)
{
    size_t i = server.n;

    while (i > 0 && server.client[i - 1] != client)
        i--;
    fuzz_expect(i > 0);
    return &server.peer[i - 1];
}

static void peer_end(int *peer)
{
    if (*peer >= 0)
        close(*peer);
    *peer = -1;
}

static void peer_write(int peer, const void *data, size_t len)
{
    if (peer >= 0) /* a client that was cut hears no more */
        (void)!send(peer, data, len, MSG_NOSIGNAL);
}

static void peer_fill(int peer, uint8_t byte, size_t len)
{
    unsigned char buf[256];

    memset(buf, byte, sizeof buf);
    peer_write(peer, buf, len);
}

static void peer_sends(int peer, struct fuzz_input *in, size_t len)
{
    if (len > in->len)
        len = in->len;
    peer_write(peer, in->at, len);
    in->at += len;
    in->len -= len;
}

/* Returns false if nothing happens before the client's deadline. */
static bool event_happens(int *peer)
{
    struct fuzz_input *in = server.handshake.len ? &server.handshake : &server.in;
    const bool over = !in->len;
    const uint8_t byte = (uint8_t)fuzz_take(in, 1);
    const enum event event = over ? EVENT_END : byte >> 5;
    const size_t len = byte & 31;
    unsigned char number[8] = { 0 };

    if (*peer >= 0 && event != EVENT_RESET)
        peer_read(*peer);
    switch (event) {
    case EVENT_SILENCE:
        return false;
    case EVENT_NUMBER:
        number[0] = (uint8_t)fuzz_take(in, 1);
        peer_write(*peer, number, sizeof number);
        return true;
    case EVENT_FILL:
        peer_fill(*peer, (uint8_t)fuzz_take(in, 1), len * 8);
        return true;
    case EVENT_CUT:
        if (server.store)
            store_cut(server.store);
        return true;
    case EVENT_BYTES:
    case EVENT_END:
    case EVENT_RESET:
    case EVENT_REFUSE:
        break;
    }
    peer_sends(*peer, in, len);
    server.refuses = server.refuses || event == EVENT_REFUSE;
    if (event != EVENT_BYTES)
        peer_end(peer);
    return true;
}

/* The client waits: the server reads and does what the input says. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    int *peer;

    fuzz_expect(n == 1);
    peer = peer_of(fds->fd);
    if (timeout_ms == 0)
        return 0;
    if (fds->events & POLLOUT)
        peer_read(*peer);
    else if (!event_happens(peer)) {
        if (timeout_ms > 0)
            server.now_ns += (uint64_t)timeout_ms * 1000000u;
        else
            peer_end(peer); /* a client that waits for ever */
    }
    server.now_ns += 1000; /* a server that sends nothing may not stop the time */
    return 1;
}

/* ---- the client ---- */

static const char *const keys[KEYS] = { "default/a", "b", "" };

static void client_reads(struct fuzz_input *in, uint64_t deadline_ns, tenrec_error *err)
{
    struct store_value value[KEYS];
    bool missing[KEYS] = { false };
    const size_t n = 1 + fuzz_take(in, 1) % KEYS;

    if (store_get_all(server.store, keys, n, deadline_ns, value, missing, err) != TENREC_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        fuzz_expect(((char *)value[i].data)[value[i].len] == '\0');
        fuzz_touch(value[i].data, value[i].len);
    }
    store_values_free(value, n);
}

static void client_swaps(uint64_t deadline_ns, tenrec_error *err)
{
    char *now;

    if (store_swap_text(server.store, keys[0], "from", "to", deadline_ns, &now, err) == TENREC_OK)
        fuzz_touch(now, strlen(now) + 1);
    free(now);
}

static void client_peeks(uint64_t deadline_ns, tenrec_error *err)
{
    struct store_value value;

    if (store_read(server.store, keys[1], deadline_ns, &value, err) == TENREC_OK && value.data)
        fuzz_touch(value.data, value.len + 1);
    free(value.data);
}

static tenrec_status client_removes(uint64_t deadline_ns, tenrec_error *err)
{
    size_t gone;
    tenrec_status st = store_remove_all(server.store, keys, KEYS, deadline_ns, &gone, err);

    fuzz_expect(gone <= KEYS);
    return st;
}

static void client_operates(struct fuzz_input *in)
{
    const unsigned op = (unsigned)fuzz_take(in, 1), ms = op >> 3;
    const uint64_t deadline_ns = ms == 31 ? CLOCK_NEVER : clock_deadline_ms(ms);
    bool missing[KEYS];
    int64_t number;
    tenrec_error err = { 0 };

    switch (op & 7) {
    case 0:
        store_set(server.store, keys[0], "value", 5, deadline_ns, &err);
        break;
    case 1:
        store_add(server.store, keys[1], 1, deadline_ns, &number, &err);
        break;
    case 2:
        client_swaps(deadline_ns, &err);
        break;
    case 3:
        client_reads(in, deadline_ns, &err);
        break;
    case 4:
        store_check_all(server.store, keys, KEYS, deadline_ns, missing, &err);
        break;
    case 5:
        client_removes(deadline_ns, &err);
        break;
    case 6:
        store_num_keys(server.store, deadline_ns, &number, &err);
        break;
    default:
        client_peeks(deadline_ns, &err);
    }
    fuzz_expect(memchr(err.text, '\0', sizeof err.text) != NULL);
}

static struct fuzz_input handshake_of(unsigned option)
{
    static const uint8_t newer[] = { EVENT_BYTES << 5 | 4, 0xff, 0xff, 0xff, 0xff };
    static const uint8_t older[] = { EVENT_END << 5, EVENT_NUMBER << 5, 0 };

    if (option == HANDSHAKE_2_2)
        return (struct fuzz_input){ newer, sizeof newer };
    if (option == HANDSHAKE_1_13)
        return (struct fuzz_input){ older, sizeof older };
    return (struct fuzz_input){ NULL, 0 };
}

/* A client that has a secret: the first bytes of each connection are a proof. */
static struct security *client_security(void)
{
    struct security *s;

    fuzz_expect(security_open(NULL, CLOCK_NEVER, &s, NULL) == TENREC_OK);
    if (!s->secret)
        fuzz_expect(secret_draw(&s->secret, NULL) == TENREC_OK);
    s->mode = SECURITY_SECRET;
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct security *security = NULL;
    unsigned option;
    tenrec_error err;

    server.in = (struct fuzz_input){ data, len };
    server.now_ns = 1000000000u;
    server.n = 0;
    server.refuses = false;
    server.store = NULL;
    option = (unsigned)fuzz_take(&server.in, 1);
    server.handshake = handshake_of(option);
    if (option == HANDSHAKE_SECRET)
        security = client_security();
    if (store_tcp_open("127.0.0.1", 1, security, clock_deadline_ms(ROUNDS), &server.store, &err) !=
        TENREC_OK)
        server.store = NULL;
    fuzz_expect(!security || !server.store); /* no input proves the secret */
    security_drop(security);
    for (int i = 0; server.store && server.in.len && i < OPERATIONS_MAX; i++)
        client_operates(&server.in);
    tenrec_store_close(server.store);
    for (size_t i = 0; i < server.n; i++) {
        if (server.peer[i] >= 0) { /* the client has closed each connection */
            peer_read(server.peer[i]);
            fuzz_expect(recv(server.peer[i], &(char){ 0 }, 1, 0) >= 0 || errno != EAGAIN);
        }
        peer_end(&server.peer[i]);
    }
    return 0;
}
