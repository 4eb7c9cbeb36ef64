/* SPDX-License-Identifier: Apache-2.0 */
/* proof_flood_test.c - strangers that open thousands of connections to a worker with a group secret
 * and complete no proof: members are not disturbed, and nothing is left of the strangers. */
#include "secrets.h"

#include "../../support/functions.h"
#include "../../support/process_use.h"
#include "admission/handshakes.h"
#include "core/backend/backend.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static struct cluster group;
static struct tenrec_worker *victim, *member;
static uint64_t hellos;

static void open_group(void)
{
    secrets_group(&group, OUR_SECRET, OUR_SECRET);
    victim = group.worker[0];
    member = group.worker[1];
    functions_must_call_add(member, "worker0");
    functions_must_call_add(victim, "worker1");
    hellos = secrets_counter(victim, "hellos");
}

static void close_group(void)
{
    assert_int_equal(secrets_counter(victim, "hellos"), hellos);
    functions_must_call_add(member, "worker0");
    functions_must_call_add(victim, "worker1");
    cluster_close(&group, TENREC_GRACEFUL);
}

/* A member comes back: its hellos are no stranger's. */
static void reconnect_member(void)
{
    tenrec_error err;

    assert_int_equal(secrets_counter(victim, "hellos"), hellos);
    assert_status(chain_disconnect(member->chain, victim->self.id, &err), &err);
    functions_must_call_add(member, "worker0");
    hellos = secrets_counter(victim, "hellos");
}

/* ---- members that call each other ---- */

struct caller {
    struct tenrec_worker *from;
    const char *to;
    pthread_t thread;
    unsigned long calls;
};

static struct caller caller[2];
static atomic_bool over;

static void *call_on(void *arg)
{
    struct caller *c = arg;
    tenrec_error err;

    for (; !atomic_load(&over); c->calls++)
        if (functions_call_add(c->from, c->to, 1, 2, &err) != TENREC_OK)
            return c;
    return NULL;
}

static void callers_begin(void)
{
    atomic_store(&over, false);
    caller[0] = (struct caller){ .from = member, .to = "worker0" };
    caller[1] = (struct caller){ .from = victim, .to = "worker1" };
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&caller[i].thread, NULL, call_on, &caller[i]), 0);
}

static void callers_end(void)
{
    void *failed[2];

    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(caller[i].thread, &failed[i]);
    for (int i = 0; i < 2; i++) {
        assert_null(failed[i]);
        assert_true(caller[i].calls > 0);
    }
}

/* ---- strangers ---- */

#define ANSWER_LEN (8 + 32)
#define LEFT_BYTES (1u << 20) /* in the allocator's caches */
#define LEFT_DESCRIPTORS 8    /* of loops and waits, which make them when they first need them */

/* What a stranger says: a HELLO, and an ANSWER that no secret has made. */
static unsigned char said[PROOF_RECORD_MAX + ANSWER_LEN];
static size_t hello_len;

static void learn_to_speak(void)
{
    static const unsigned char answer[ANSWER_LEN] = { 'T', 'N', 'R', 'P', 1, 3, 32, 0 };
    const struct proof_party me = { TENREC_ANONYMOUS, 0, "stranger", "" };
    struct by_hand h = by_hand_dial(OTHER_SECRET, &me, victim, 0);
    const void *hello = proof_output(h.proof, &hello_len);

    memcpy(said, hello, hello_len);
    memcpy(said + hello_len, answer, ANSWER_LEN);
    by_hand_close(&h);
}

/* Says `len` bytes. Returns false if the worker closes the connection where it owes a CHALLENGE:
 * once that is here, it has accepted all connections before. */
static bool stop_at(int fd, size_t len)
{
    unsigned char challenge[PROOF_RECORD_MAX];

    raw_send(fd, said, len);
    return len < hello_len || by_hand_read(&(struct by_hand){ .fd = fd }, challenge) > 0;
}

/* More at a time than the worker keeps of one address, if the limit of descriptors allows: a new
 * one evicts the oldest. They stop at each byte in turn. */
TEST_WITH(members_call_each_other_while_10000_half_handshakes_come, open_group, close_group)
{
    enum { MANY = 10000, WINDOW = HANDSHAKES_OF_SOURCE + 300 };
    static int fd[WINDOW];
    const int window = process_may_open(2 * WINDOW + 200) ? WINDOW : 200;
    unsigned descriptors;
    size_t memory;
    uint64_t failed;

    learn_to_speak();
    failed = secrets_counter(victim, "handshakes_failed");
    descriptors = process_descriptors();
    memory = heap_use();
    memset(fd, -1, sizeof fd);
    callers_begin();
    for (int i = 0; i < MANY; i++) {
        int *at = &fd[i % window];

        if (*at >= 0)
            close(*at);
        *at = raw_connect(chain_address(victim->chain));
        assert_true(stop_at(*at, (size_t)i % (hello_len + ANSWER_LEN)));
    }
    callers_end();
    reconnect_member();
    for (int i = 0; i < window; i++)
        close(fd[i]);
    assert_becomes(secrets_counter(victim, "handshakes_failed") >= failed + MANY);
    assert_becomes(process_descriptors() <= descriptors + LEFT_DESCRIPTORS);
    assert_becomes(heap_use() < memory + LEFT_BYTES);
}

/* ---- the rate of one address ---- */

/* Addresses of this host that are not the usual one, and so have a limit. Each case has one. */
#define FIRST "127.0.0.2"
#define SECOND "127.0.0.3"

static int connect_from(const char *address)
{
    const char *port = strrchr(chain_address(victim->chain), ':') + 1;
    const struct timeval limit = { 20, 0 };
    struct sockaddr_in us = { .sin_family = AF_INET }, it = us;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    inet_pton(AF_INET, address, &us.sin_addr);
    it.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    it.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    assert_int_equal(bind(fd, (struct sockaddr *)&us, sizeof us), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&it, sizeof it), 0);
    return fd;
}

/* Returns true if a HELLO from there gets its CHALLENGE. */
static bool is_answered(const char *address)
{
    int fd = connect_from(address);
    const bool answered = stop_at(fd, hello_len);

    close(fd);
    return answered;
}

/* A slow run may never be faster than the limit. */
static bool runs_fast(void)
{
    return testing_slow() == 1;
}

TEST_WHEN(stranger_gets_no_more_answers_when_it_has_begun_too_many_proofs, runs_fast, open_group,
          close_group)
{
    const uint64_t refused = secrets_counter(victim, "proofs_refused");
    unsigned n = 0;

    learn_to_speak();
    while (is_answered(FIRST))
        assert_true(++n < 4 * HANDSHAKES_OF_SOURCE);
    assert_in_range(n, HANDSHAKES_OF_SOURCE, 4 * HANDSHAKES_OF_SOURCE);
    assert_becomes(secrets_counter(victim, "proofs_refused") == refused + 1);
    reconnect_member();
}

TEST_WITH(address_of_a_member_has_no_limit_of_proofs, open_group, close_group)
{
    const struct proof_party me = { TENREC_ANONYMOUS, 0, "tool", "" };
    struct by_hand h = by_hand_dial(OUR_SECRET, &me, victim, 0);
    tenrec_error err;

    learn_to_speak();
    close(h.fd);
    h.fd = connect_from(SECOND);
    assert_status(by_hand_prove(&h, &err), &err);
    raw_frame(h.fd, raw_hello, sizeof raw_hello);
    hellos++;
    assert_becomes(secrets_counter(victim, "hellos") == hellos);
    for (unsigned i = 0; i < HANDSHAKES_OF_SOURCE + 1000; i++)
        assert_true(is_answered(SECOND));
    by_hand_close(&h);
}

int main(void)
{
    int failed;

    setenv("TENREC_TRANSPORTS", "uv", 1);
    setenv("TENREC_CHANNELS", "basic", 1);
    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
