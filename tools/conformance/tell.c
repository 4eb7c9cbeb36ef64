/* SPDX-License-Identifier: Apache-2.0 */
/* tell.c - every send completes once, and answers reach their caller. */
#include "conformance/agent_case.h"

#include "core/base/clock.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

CASE(done_and_release_come_exactly_once, "AG-4 AG-10 AG-16")
{
    enum { N = 500 };
    static struct tally t;
    tenrec_error err;

    for (int i = 0; i < N; i++)
        send_ping(a, b->id, i, &t);
    expect_of("AG-10");
    expect_becomes(side_count(b) == N, "%s has received %zu of %d messages", b->name, side_count(b),
                   N);
    expect_of("AG-16");
    expect_ok(chain_drain(a->chain, 10000, &err), &err, "drain");
    expect_of("AG-4");
    expect_equal(atomic_load(&t.ok), N, "the number of sends that succeeded");
    chain_shutdown(a->chain);
    expect_equal(told(&t), N, "the number of sends that are done");
    expect_equal(atomic_load(&t.released), N, "the number of messages that are released");
}

CASE(an_unknown_peer_is_an_error, "AG-4 AG-10")
{
    static struct tally t;

    expect_of("AG-4");
    send_ping(a, 31, 1, &t);
    expect_becomes(atomic_load(&t.failed) == 1, "the send to an unknown peer has not failed");
    expect_status(atomic_load(&t.last_error), TENREC_EPEER_UNKNOWN,
                  "the error of a send to an unknown peer");
    expect_becomes(atomic_load(&t.released) == 1, "the message to an unknown peer is not released");
    expect_of("AG-10");
    send_ping(a, b->id, 2, &t);
    expect_equal(await(b, 0, NULL)->id, 2, "the id of the next request");
}

CASE(a_send_to_oneself_arrives, "AG-10")
{
    static struct tally t;
    tenrec_peer from = -7;

    send_ping(a, a->id, 9, &t);
    expect_equal(await(a, 0, &from)->id, 9, "the id of the message to oneself");
    expect_equal(from, a->id, "the sender, as deliver names it,");
}

enum { PER_THREAD = 200 };

static void *send_many(void *arg)
{
    const struct sender *s = arg;

    for (int i = 0; i < PER_THREAD; i++) {
        char bytes[64];
        memset(bytes, i, sizeof bytes);
        send_msg(s->from, s->to, make_request(s->first_id + i, bytes, (size_t)i % 64, 0, s->tally),
                 s->tally);
    }
    return NULL;
}

/* Each thread's messages came, once each and in its order. */
static void check_ids(struct side *k, const int64_t *first_id, int n)
{
    int next[4] = { 0 };

    expect_becomes(side_count(k) == (size_t)n * PER_THREAD, "%s has received %zu of %d messages",
                   k->name, side_count(k), n * PER_THREAD);
    for (size_t i = 0; i < (size_t)n * PER_THREAD; i++) {
        const struct tenrec_msg *msg = side_got(k, i, NULL);
        for (int s = 0; s < n; s++)
            if (msg->id >= first_id[s] && msg->id < first_id[s] + PER_THREAD) {
                expect_equal(msg->id, first_id[s] + next[s],
                             "the id of message %zu, in the order of its thread,", i);
                expect_equal(msg->payload_len, next[s] % 64,
                             "the length of the payload of message %zu", i);
                next[s]++;
            }
    }
}

CASE(many_threads_may_send_at_once, "AG-2 AG-10")
{
    static struct tally t;
    const struct sender s[4] = { { a, b->id, 0, &t },
                                 { b, a->id, 10000, &t },
                                 { a, b->id, 20000, &t },
                                 { b, a->id, 30000, &t } };
    const int64_t to_b[] = { 0, 20000 }, to_a[] = { 10000, 30000 };
    const int64_t all[] = { 0, 10000, 20000, 30000 };
    pthread_t thread[4];

    expect_of("AG-2");
    for (int i = 0; i < 4; i++)
        expect_here(pthread_create(&thread[i], NULL, send_many, (void *)(uintptr_t)&s[i]) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    if (a == b) {
        check_ids(a, all, 4);
    } else {
        check_ids(b, to_b, 2);
        check_ids(a, to_a, 2);
    }
    expect_of("AG-10");
    expect_becomes(atomic_load(&t.ok) == 4 * PER_THREAD, "%d of %d sends have succeeded",
                   atomic_load(&t.ok), 4 * PER_THREAD);
    expect_becomes(atomic_load(&t.released) == 4 * PER_THREAD, "%d of %d messages are released",
                   atomic_load(&t.released), 4 * PER_THREAD);
}

/* --- answers ------------------------------------------------------------------- */

CASE(an_answer_finds_its_way_back, "AG-10")
{
    static struct tally t;
    struct tenrec_msg *msg;

    atomic_store(&b->answers, true);
    send_ping(a, b->id, 42, &t);
    msg = await(a, 0, NULL);
    expect_equal(msg->type, TENREC_MSG_RET, "the type of the answer (expected TENREC_MSG_RET)");
    expect_equal(msg->id, 42, "the id of the answer");
    expect_bytes(msg->payload, "ping", 4, "the payload of the answer");
}

CASE_OF_TWO(an_answer_without_a_way_back_is_dropped, "AG-4 AG-10")
{
    static struct tally t, answered;
    struct tenrec_msg *request, *reply;
    tenrec_error err;

    send_ping(a, b->id, 1, &t);
    request = await(b, 0, NULL);
    disconnect(&err);
    send_ping(a, b->id, 2, &t); /* a new connection, which the answer must not take */
    await(b, 1, NULL);
    reply = make_request(1, "late", 4, 0, &answered);
    reply->type = TENREC_MSG_RET;
    reply->route = request->route;
    send_msg(b, a->id, reply, &answered);
    expect_of("AG-4");
    expect_becomes(
        told(&answered) == 1 && atomic_load(&answered.released) == 1,
        "the answer without a way back is done %d times and released %d times, expected once each",
        told(&answered), atomic_load(&answered.released));
    expect_of("AG-10");
    atomic_store(&b->answers, true);
    send_ping(a, b->id, 3, &t);
    expect_equal(await(a, 0, NULL)->id, 3, "the id of the next answer");
}

/* Either it reads until the answer arrives, or it fails at once. */
CASE(poll_brings_the_answer_or_is_unsupported, "AG-13")
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct tenrec_wait wait = { .size = sizeof wait,
                                .wake_fd = fd,
                                .done = (const uint32_t *)&a->n_listed };
    static struct tally t;
    tenrec_status st;

    atomic_store(&a->wake_fd, fd);
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    if (a != b) {
        wait.deadline_ns = clock_deadline_ms(20); /* no answer is due yet */
        st = chain_poll(a->chain, b->id, &wait);
        expect(st == TENREC_OK || st == TENREC_EUNSUPPORTED,
               "poll is %s, expected OK or EUNSUPPORTED", tenrec_status_name(st));
        if (st == TENREC_OK && !clock_passed(wait.deadline_ns))
            expect_fail("poll ends before its deadline, and without a message");
    }
    atomic_store(&b->answers, true);
    wait.deadline_ns = clock_deadline_ms(10000);
    send_ping(a, b->id, 2, &t);
    st = chain_poll(a->chain, b->id, &wait);
    if (st != TENREC_EUNSUPPORTED) {
        expect_status(st, TENREC_OK, "the status of poll");
        expect(atomic_load(&a->n_listed) > 0, "poll returns OK before the answer is delivered");
    }
    if (a != b)
        expect_equal(await(a, 0, NULL)->id, 2, "the id of the answer");
    chain_shutdown(a->chain); /* no thread writes to the descriptor afterwards */
    close(fd);
    if (st == TENREC_EUNSUPPORTED)
        expect_not_offered("poll");
}
