/* SPDX-License-Identifier: Apache-2.0 */
/* handshakes_test.c - strangers that begin handshakes and stall: slots and descriptors. */
#include "agent/agent.h"
#include "core/backend/chain_layer.h"
#include "raw.h"

#include "node.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the list alone ---- */

struct entry {
    struct handshake h;
    unsigned evicted;
};

static unsigned n_evicted;

static void entry_evict(struct handshake *h, const char *why)
{
    struct entry *e = (struct entry *)(void *)((char *)h - offsetof(struct entry, h));

    assert_non_null(why);
    assert_null(h->prev);
    e->evicted = ++n_evicted;
}

static struct tenrec_account *source_of(const char *address)
{
    union transport_address a = { .v4 = { .sin_family = AF_INET } };

    assert_int_equal(inet_pton(AF_INET, address, &a.v4.sin_addr), 1);
    return chain_host.budget->source(&n_evicted, &a.any, 0);
}

static void entry_add(struct handshakes *all, struct entry *e, const char *address)
{
    *e = (struct entry){ .h.evict = entry_evict };
    handshakes_add(all, &e->h, source_of(address));
}

TEST(handshakes_evict_the_oldest_of_a_source_that_has_too_many)
{
    static struct entry e[HANDSHAKES_OF_SOURCE + 2];
    struct handshakes all;

    n_evicted = 0;
    handshakes_init(&all, chain_host.budget);
    entry_add(&all, &e[0], "192.0.2.1");
    for (unsigned i = 1; i <= HANDSHAKES_OF_SOURCE; i++)
        entry_add(&all, &e[i], "192.0.2.2");
    assert_int_equal(n_evicted, 0);
    entry_add(&all, &e[HANDSHAKES_OF_SOURCE + 1], "192.0.2.2");
    assert_int_equal(n_evicted, 1);
    assert_int_equal(e[1].evicted, 1);
    assert_int_equal(all.n, HANDSHAKES_OF_SOURCE + 1);
    while (handshakes_evict_oldest(&all, "the test ends"))
        continue;
    assert_int_equal(e[0].evicted, 2);
    assert_int_equal(all.n, 0);
}

TEST(handshakes_evict_the_oldest_of_all_when_all_places_are_taken)
{
    static struct entry e[HANDSHAKES_MAX + 1];
    struct handshakes all;
    char address[32];

    n_evicted = 0;
    handshakes_init(&all, chain_host.budget);
    for (unsigned i = 0; i < HANDSHAKES_MAX; i++) {
        snprintf(address, sizeof address, "192.0.2.%u", i % 16);
        entry_add(&all, &e[i], address);
    }
    assert_int_equal(n_evicted, 0);
    entry_add(&all, &e[HANDSHAKES_MAX], "198.51.100.1");
    assert_int_equal(n_evicted, 1);
    assert_int_equal(e[0].evicted, 1);
    handshakes_remove(&all, &e[1].h);
    handshakes_remove(&all, &e[1].h);
    assert_int_equal(all.n, HANDSHAKES_MAX - 1);
    while (handshakes_evict_oldest(&all, "the test ends"))
        continue;
    assert_int_equal(e[1].evicted, 0);
}

TEST(handshakes_evict_members_and_possible_members_last)
{
    static const unsigned order[] = { 3, 4, 5, 1, 2 };
    static const char *const address[] = { "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3",
                                           "192.0.2.4" };
    struct entry e[5];
    struct handshakes all;

    n_evicted = 0;
    handshakes_init(&all, chain_host.budget);
    for (unsigned i = 0; i < 5; i++) {
        e[i] = (struct entry){ .h.evict = entry_evict };
        e[i].h.kind = i == 1 || i == 4 ? HANDSHAKE_PIPE : HANDSHAKE_CONN;
        e[i].h.local = i == 2;
        handshakes_add(&all, &e[i].h, source_of(address[i]));
    }
    handshake_trust(&e[1].h);
    /* The member's source has a connection, which is the oldest of all. */
    assert_true(handshake_is_awaited(&e[0].h));
    assert_false(handshake_is_awaited(&e[3].h));
    for (unsigned i = 0; i < 5; i++)
        assert_true(handshakes_evict_oldest(&all, "the test ends"));
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(e[i].evicted, order[i]);
}

/* ---- an agent ---- */

#define DESCRIPTORS 256
#define CROWD 400

static struct node n[2];

/* A process that opens CROWD connections to `address`, says `len` bytes on each and no more. */
static pid_t crowd_start(const char *address, const void *said, size_t len)
{
    struct rlimit limit;
    int ready[2];
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < CROWD; i++)
            raw_send(raw_connect(address), said, len);
        if (write(ready[1], &byte, 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void crowd_end(pid_t child)
{
    int status;

    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void agents_open(uint64_t hello_ms, uint64_t handshake_ms)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.hello_timeout_ms = hello_ms;
        n[i].options.handshake_timeout_ms = handshake_ms;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
}

/* More connections than the process has descriptors; none of them ends by itself. */
static void assert_crowd_keeps_nobody_out(const void *said, size_t len)
{
    struct rlimit before, now;
    int own[DESCRIPTORS / 8];
    pid_t crowd;

    getrlimit(RLIMIT_NOFILE, &before);
    now = before;
    now.rlim_cur = DESCRIPTORS;
    agents_open(1000000, 1000000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    crowd = crowd_start(n[1].address, said, len);
    assert_becomes(node_counter(&n[1], "handshakes_failed") > CROWD - DESCRIPTORS);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        own[i] = dup(0);
        assert_true(own[i] >= 0);
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        close(own[i]);
    assert_ping(&n[0], 1);
    crowd_end(crowd);
    group_close(n, 2);
    setrlimit(RLIMIT_NOFILE, &before);
}

TEST(agent_lets_a_peer_in_at_once_while_silent_connections_hold_all_descriptors)
{
    assert_crowd_keeps_nobody_out("", 0);
}

TEST(agent_lets_a_peer_in_at_once_while_half_opened_pipes_hold_all_descriptors)
{
    unsigned char said[16 + sizeof raw_hello + sizeof raw_brochure] = { sizeof raw_hello };

    memcpy(said + 8, raw_hello, sizeof raw_hello);
    said[8 + sizeof raw_hello] = sizeof raw_brochure;
    memcpy(said + 16 + sizeof raw_hello, raw_brochure, sizeof raw_brochure);
    assert_crowd_keeps_nobody_out(said, sizeof said);
}

TEST(agent_closes_a_connection_whose_hello_is_late)
{
    int fd;

    agents_open(100, 1000000);
    fd = raw_connect(n[1].address);
    assert_true(raw_closed(fd));
    close(fd);
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

/* Keeps the loop thread of an agent between two polls of its sockets. */
struct hold {
    struct reactor_task task;
    pthread_mutex_t lock;
    atomic_bool held;
};

static void hold_run(struct reactor_task *t)
{
    struct hold *h = (struct hold *)(void *)((char *)t - offsetof(struct hold, task));

    atomic_store(&h->held, true);
    pthread_mutex_lock(&h->lock);
    pthread_mutex_unlock(&h->lock);
    atomic_store(&h->held, false);
}

static void hold_begin(struct hold *h, struct node *at)
{
    struct agent *a = at->agent.impl;

    *h = (struct hold){ .task.run = hold_run };
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_lock(&h->lock);
    assert_true(reactor_post(&a->ep.reactor, &h->task));
    assert_becomes(atomic_load(&h->held));
}

static void hold_end(struct hold *h)
{
    pthread_mutex_unlock(&h->lock);
    assert_becomes(!atomic_load(&h->held));
    pthread_mutex_destroy(&h->lock);
}

/* The loop fetches both events at once: that of the listening socket, for which the oldest
 * handshake is evicted, and that of the evicted connection. */
TEST(agent_ignores_bytes_that_an_evicted_connection_has_just_sent)
{
    static const unsigned char no_hello[9] = { 1, 0, 0, 0, 0, 0, 0, 0, 0xff };
    struct rlimit before, now;
    struct hold hold;
    uint64_t failed;
    int fd, late;

    agents_open(1000000, 1000000);
    fd = raw_connect(n[1].address);
    assert_ping(&n[0], 1); /* connections are accepted in their order */
    failed = node_counter(&n[1], "handshakes_failed");
    hold_begin(&hold, &n[1]);
    late = raw_connect(n[1].address);
    raw_send(fd, no_hello, sizeof no_hello);
    getrlimit(RLIMIT_NOFILE, &before);
    now = before;
    now.rlim_cur = (rlim_t)late + 4; /* a quarter is kept */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    hold_end(&hold);
    assert_true(raw_closed(fd));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(node_counter(&n[1], "handshakes_failed"), failed + 1);
    close(fd);
    close(late);
    assert_ping(&n[0], 1);
    group_close(n, 2);
}
