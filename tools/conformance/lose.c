/* SPDX-License-Identifier: Apache-2.0 */
/* lose.c - what happens when a peer takes nothing, breaks off or ends. */
#include "conformance/agent_case.h"

#include <errno.h>
#include <stdlib.h>

CASE_OF_TWO(requests_wait_while_the_user_takes_no_request, "AG-14 AG-27")
{
    static struct tally t;

    atomic_store(&b->refuses, true);
    atomic_store(&a->answers, true);
    send_ping(a, b->id, 1, &t);
    send_ping(b, a->id, 2, &t);
    expect_of("AG-27");
    expect_equal(
        await(b, 0, NULL)->type, TENREC_MSG_RET,
        "the type of the message that arrives while the user takes no request (expected the "
        "answer, TENREC_MSG_RET)");
    expect_equal(side_count(b), 1,
                 "the number of messages that arrive while the user takes no request");
    expect_of("AG-14");
    atomic_store(&b->refuses, false);
    chain_resume(b->chain);
    expect_equal(await(b, 1, NULL)->id, 1, "the id of the request that waited");
}

/* --- lost peers ------------------------------------------------------------------ */

CASE_OF_TWO(a_send_after_disconnect_connects_again, "AG-15 AG-28")
{
    static struct tally t;
    tenrec_error err;

    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    expect_becomes(atomic_load(&t.ok) == 1, "the send has not succeeded");
    expect_of("AG-15");
    disconnect(&err);
    expect_of("AG-28");
    expect_becomes(atomic_load(&a->lost) > 0,
                   "%s has not learned by peer_lost that its connection is gone", a->name);
    expect_of("AG-15");
    send_ping(a, b->id, 2, &t);
    expect_equal(await(b, 1, NULL)->id, 2, "the id of the request after the disconnect");
    expect_of("AG-28");
    expect_equal(atomic_load(&a->lost), 1, "the number of calls of peer_lost");
}

CASE_OF_TWO(a_peer_that_shuts_down_is_lost, "AG-28")
{
    static struct tally t;

    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    chain_shutdown(b->chain);
    expect_becomes(atomic_load(&a->lost) == 1, "peer_lost was called %d times, expected once",
                   atomic_load(&a->lost));
    send_ping(a, b->id, 2, &t);
    expect_becomes(told(&t) == 2 && atomic_load(&t.released) == 2,
                   "of 2 sends %d are done and %d released", told(&t), atomic_load(&t.released));
    expect_equal(atomic_load(&t.failed), 1, "the number of sends that failed");
}

CASE_OF_TWO(a_caller_that_shuts_down_is_lost, "AG-29")
{
    static struct tally t;

    send_ping(b, a->id, 1, &t);
    await(a, 0, NULL);
    expect_equal(atomic_load(&a->callers_lost), 0,
                 "the number of calls of caller_lost before the end of the caller");
    chain_shutdown(b->chain);
    expect_becomes(atomic_load(&a->callers_lost) == 1,
                   "caller_lost was called %d times, expected once", atomic_load(&a->callers_lost));
    expect_equal(
        atomic_load(&a->lost), 0,
        "the number of calls of peer_lost, of a peer to which nothing was sent,"); /* nothing of a's
                                                                                      was under way
                                                                                      to it */
}

CASE_OF_TWO(an_address_without_a_listener_refuses, "AG-37")
{
    static struct tally t;

    chain_shutdown(b->chain);
    send_ping(a, b->id, 1, &t);
    expect_becomes(atomic_load(&t.failed) == 1, "the send to an ended peer has not failed");
    if (atomic_load(&t.last_error) != TENREC_ECONNECT)
        expect_not_offered("a connection that is refused");
    expect_equal(atomic_load(&t.last_errno), ECONNREFUSED,
                 "os_errno of the failed send (expected ECONNREFUSED)");
}

/* --- the end ---------------------------------------------------------------------- */

CASE(shutdown_completes_pending_sends, "AG-4 AG-17")
{
    enum { N = 40, BYTES = 1 << 18 };
    char *bytes = calloc(1, BYTES);
    static struct tally t;

    atomic_store(&b->refuses, true); /* so that sends pile up */
    for (int i = 0; i < N; i++)
        send_msg(a, b->id, make_request(i, bytes, BYTES, 0, &t), &t);
    expect_of("AG-17");
    chain_shutdown(a->chain);
    expect_of("AG-4");
    expect_equal(told(&t), N, "the number of sends that are done after shutdown");
    expect_equal(atomic_load(&t.released), N,
                 "the number of messages that are released after shutdown");
    free(bytes);
}

#define IN_FLIGHT_MAX 1000 /* pings, fewer than there are hooks of messages */

static atomic_bool stop;

static void *send_until_stopped(void *arg)
{
    const struct sender *s = arg;

    for (int64_t i = 0; !atomic_load(&stop); i++) {
        send_ping(s->from, s->to, i, s->tally);
        while (i - told(s->tally) > IN_FLIGHT_MAX && !atomic_load(&stop))
            sched_yield();
    }
    return NULL;
}

CASE_OF_TWO(nothing_is_called_after_shutdown, "AG-17")
{
    static struct tally t;
    struct sender s = { b, a->id, 0, &t };
    pthread_t thread;
    int delivered, lost, told_before;

    atomic_store(&stop, false);
    atomic_store(&a->discards, true);
    expect_here(pthread_create(&thread, NULL, send_until_stopped, &s) == 0);
    expect_becomes(atomic_load(&a->n_delivered) > 50,
                   "%s has received %d messages, expected more than 50", a->name,
                   atomic_load(&a->n_delivered));
    chain_shutdown(a->chain);
    delivered = atomic_load(&a->n_delivered);
    lost = atomic_load(&a->lost);
    told_before = told(&t);
    /* A good deal more is tried before we look. */
    expect_becomes(told(&t) > told_before + 100,
                   "%d sends to the ended worker are done, expected more than %d", told(&t),
                   told_before + 100);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    expect_equal(atomic_load(&a->n_delivered), delivered,
                 "the number of messages delivered after shutdown and before");
    expect_equal(atomic_load(&a->lost), lost, "the number of peers lost after shutdown and before");
    chain_shutdown(b->chain);
    expect_equal(told(&t), atomic_load(&t.released),
                 "the number of sends that are done, beside those released,");
}

CASE(a_send_after_shutdown_fails, "AG-4 AG-17")
{
    static struct tally t;

    chain_shutdown(a->chain);
    expect_of("AG-4");
    send_ping(a, b->id, 1, &t);
    expect_equal(atomic_load(&t.failed), 1, "the number of sends that failed");
    expect_of("AG-17");
    expect_status(atomic_load(&t.last_error), TENREC_ESHUTDOWN,
                  "the error of a send after shutdown");
    expect_of("AG-4");
    expect_equal(atomic_load(&t.released), 1, "the number of messages that are released");
}
