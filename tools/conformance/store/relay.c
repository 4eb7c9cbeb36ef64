/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/store/store_clients.h"

#include "conformance/expect.h"

#include "core/base/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 16

struct pair {
    int fd[2]; /* client, server */
};

struct relay {
    struct sockaddr_storage to;
    socklen_t to_len;
    uint16_t port;
    int wake_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    int listen_fd;        /* -1: connections are refused */
    bool frozen, stopped;
    bool changed; /* by its owner, and the thread has not seen it */
    struct pair pair[PAIRS_MAX];
    size_t n;
};

bool relay_address(const char *text, struct sockaddr_storage *ret, unsigned *ret_len)
{
    const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    char host[80], service[8];
    uint16_t port;

    if (resolve_split(text, host, sizeof host, &port, NULL) != TENREC_OK)
        return false;
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(host, service, &hints, &found))
        return false;
    memcpy(ret, found->ai_addr, found->ai_addrlen);
    *ret_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

/* A socket at the port of the relay, or at any port for 0. */
static int relay_bind(uint16_t port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;

    expect_here(fd >= 0);
    expect_here(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    expect_here(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

/* ---- the thread; with the lock held ---- */

static void pair_drop(struct relay *r, size_t i)
{
    close(r->pair[i].fd[0]);
    close(r->pair[i].fd[1]);
    r->pair[i] = r->pair[--r->n];
}

static void relay_accept(struct relay *r)
{
    const int client = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    int server;

    if (client < 0)
        return;
    server = socket(r->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->n == PAIRS_MAX || server < 0 ||
        connect(server, (struct sockaddr *)&r->to, r->to_len) != 0) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    r->pair[r->n++] = (struct pair){ { client, server } };
}

/* Returns false when one of the two has ended. Values of the cases of a relay are short: a blocking
 * write passes them. */
static bool relay_carry(int from, int to)
{
    char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT), sent;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    for (ssize_t at = 0; at < n; at += sent)
        if ((sent = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL)) <= 0)
            return false;
    return n > 0;
}

/* Waits for events without the lock, and handles them. Returns false at the end. */
static bool relay_turn(struct relay *r)
{
    struct pollfd p[2 + 2 * PAIRS_MAX];
    eventfd_t wakes;
    nfds_t n = 0;

    p[n++] = (struct pollfd){ .fd = r->wake_fd, .events = POLLIN };
    p[n++] = (struct pollfd){ .fd = r->listen_fd, .events = POLLIN };
    for (size_t i = 0; i < r->n && !r->frozen; i++)
        for (int side = 0; side < 2; side++)
            p[n++] = (struct pollfd){ .fd = r->pair[i].fd[side], .events = POLLIN };
    pthread_mutex_unlock(&r->lock);
    poll(p, n, -1);
    pthread_mutex_lock(&r->lock);
    if (r->changed) { /* perhaps since the poll: `p` may have pairs that are gone */
        r->changed = false;
        eventfd_read(r->wake_fd, &wakes);
        return !r->stopped;
    }
    for (size_t i = (n - 2) / 2; i-- > 0;)
        if ((p[2 + 2 * i].revents && !relay_carry(r->pair[i].fd[0], r->pair[i].fd[1])) ||
            (p[3 + 2 * i].revents && !relay_carry(r->pair[i].fd[1], r->pair[i].fd[0])))
            pair_drop(r, i);
    if (p[1].revents)
        relay_accept(r);
    return true;
}

static void *relay_run(void *arg)
{
    struct relay *r = arg;

    pthread_mutex_lock(&r->lock);
    while (relay_turn(r))
        continue;
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the owner ---- */

struct relay *relay_new(const char *to)
{
    struct relay *r = calloc(1, sizeof *r);
    struct sockaddr_in at = { .sin_port = 0 };
    socklen_t len = sizeof at;
    int fd;

    expect_here(r);
    if (!relay_address(to, &r->to, &r->to_len))
        expect_fail("\"%.80s\" is no numeric address with a port", to);
    fd = relay_bind(0);
    expect_here(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    r->port = ntohs(at.sin_port);
    r->listen_fd = -1;
    close(fd); /* SO_REUSEADDR takes it again */
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    expect_here(r->wake_fd >= 0);
    pthread_mutex_init(&r->lock, NULL);
    expect_here(pthread_create(&r->thread, NULL, relay_run, r) == 0);
    return r;
}

/* listens: >0 begins, 0 ends, <0 leaves it as it is. */
static void relay_change(struct relay *r, int listens, bool breaks, bool frozen, bool stopped)
{
    pthread_mutex_lock(&r->lock);
    r->frozen = frozen;
    r->stopped = stopped;
    r->changed = true;
    while (breaks && r->n)
        pair_drop(r, r->n - 1);
    if (listens == 0 && r->listen_fd >= 0) {
        close(r->listen_fd);
        r->listen_fd = -1;
    }
    if (listens > 0 && r->listen_fd < 0) {
        r->listen_fd = relay_bind(r->port);
        expect_here(listen(r->listen_fd, PAIRS_MAX) == 0);
    }
    eventfd_write(r->wake_fd, 1);
    pthread_mutex_unlock(&r->lock);
}

void relay_drop(struct relay *r)
{
    relay_change(r, 0, true, false, true);
    pthread_join(r->thread, NULL);
    close(r->wake_fd);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

uint16_t relay_port(const struct relay *r)
{
    return r->port;
}

void relay_listen(struct relay *r)
{
    relay_change(r, 1, false, false, false);
}

void relay_freeze(struct relay *r)
{
    relay_change(r, -1, false, true, false);
}

void relay_cut(struct relay *r)
{
    relay_change(r, 0, true, false, false);
}
