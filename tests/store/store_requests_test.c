/* SPDX-License-Identifier: Apache-2.0 */
/* store_requests_test.c - requests to the TCP store's server, byte by byte, in the numbers of
 * torch 1.13 and of 2.2 and later. */
#include "served.h"

#include "group/store/store_session.h"

#include <poll.h>

/* The example of the wire document. */
TEST_WITH(server_speaks_1_13, start_server, stop_server)
{
    int fd = dial();

    say(fd, "00" K("61") "0500000000000000 68656c6c6f"); /* SET /a hello */
    say(fd, "05" ONE K("61"));                           /* WAIT */
    hear(fd, "00");
    say(fd, "02" K("61")); /* GET */
    hear(fd, "0500000000000000 68656c6c6f");
    say(fd, "03" K("62") "0500000000000000"); /* ADD /b 5 */
    hear(fd, "0500000000000000");
    say(fd, "03" K("62") "f9ffffffffffffff"); /* ADD /b -7 */
    hear(fd, "feffffffffffffff");
    say(fd, "02" K("62"));
    hear(fd, TWO "2d32");              /* "-2" in decimal text */
    say(fd, "04" TWO K("61") K("63")); /* CHECK */
    hear(fd, "01");
    say(fd, "04" TWO K("61") K("62"));
    hear(fd, "00");
    say(fd, "06"); /* GETNUMKEYS */
    hear(fd, TWO);
    say(fd, "01" K("63") ONE "78" ONE "79"); /* COMPARE_SET missing, expected x */
    hear(fd, ONE "78");
    say(fd, "01" K("63") NONE ONE "79"); /* missing, expected nothing */
    hear(fd, ONE "79");
    say(fd, "01" K("63") NONE ONE "7a"); /* present, not equal */
    hear(fd, ONE "79");
    say(fd, "08" K("63")); /* DELETE_KEY */
    hear(fd, ONE);
    say(fd, "08" K("63"));
    hear(fd, NONE);
    close(fd);
}

TEST_WITH(server_speaks_2_2, start_server, stop_server)
{
    int fd = dial_2_2();

    say(fd, "01" K("61") "0500000000000000 68656c6c6f"); /* SET */
    say(fd, "06" ONE K("61"));                           /* WAIT */
    hear(fd, "00");
    say(fd, "03" K("61")); /* GET */
    hear(fd, "0500000000000000 68656c6c6f");
    say(fd, "03" K("7a")); /* GET of a key that is not there */
    hear(fd, NONE);
    say(fd, "04" K("62") "0500000000000000"); /* ADD */
    hear(fd, "0500000000000000");
    say(fd, "05" TWO K("61") K("62")); /* CHECK */
    hear(fd, "00");
    say(fd, "07"); /* GETNUMKEYS */
    hear(fd, TWO);
    say(fd, "02" K("63") NONE ONE "79"); /* COMPARE_SET */
    hear(fd, ONE "79");
    say(fd, "08" K("63")); /* DELETE_KEY */
    hear(fd, ONE);
    say(fd, "09" K("61") ONE "21");    /* APPEND */
    say(fd, "0a" TWO K("61") K("62")); /* MULTI_GET */
    hear(fd, "0600000000000000 68656c6c6f21" ONE "35");
    say(fd, "0b" TWO K("64") ONE "31" K("65") ONE "32"); /* MULTI_SET */
    say(fd, "0a" TWO K("64") K("65"));
    hear(fd, ONE "31" ONE "32");
    say(fd, "0c"); /* CANCEL_WAIT with nothing to cancel */
    hear(fd, "01");
    say(fd, "0d 04030201"); /* PING */
    hear(fd, "04030201");
    say(fd, "08" K("61"));
    hear(fd, ONE);
    say(fd, "08" K("62"));
    hear(fd, ONE);
    say(fd, "08" K("64"));
    hear(fd, ONE);
    say(fd, "11"); /* LIST_KEYS */
    hear(fd, ONE K("65"));
    close(fd);
}

TEST_WITH(server_queues_in_order, start_server, stop_server)
{
    int fd = dial_2_2();

    say(fd, "10" K("71")); /* QUEUE_LEN */
    hear(fd, NONE);
    say(fd, "0f" K("71")); /* QUEUE_POP of an empty one: only the size */
    hear(fd, NONE);
    say(fd, "0e" K("71") ONE "31"
                             "0e" K("71") ONE "32"); /* QUEUE_PUSH twice */
    say(fd, "10" K("71"));
    hear(fd, TWO);
    say(fd, "05" ONE K("71")); /* CHECK: a queue counts as there */
    hear(fd, "00");
    say(fd, "0f" K("71"));
    hear(fd, TWO ONE "31");
    say(fd, "0f" K("71"));
    hear(fd, ONE ONE "32");
    close(fd);
}

TEST_WITH(server_push_wakes_one_waiter, start_server, stop_server)
{
    int a = dial_2_2(), b = dial_2_2(), c = dial_2_2();
    struct pollfd p[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

    waits(a, "06" ONE K("71"));
    waits(b, "06" ONE K("71"));
    say(c, "0e" K("71") ONE "31 0d 00000000");
    hear(c, "00000000");
    assert_int_equal(poll(p, 2, 20000), 1);
    say(c, "0e" K("71") ONE "31 0d 00000000");
    hear(c, "00000000");
    hear(a, "00");
    hear(b, "00");
    close(a);
    close(b);
    close(c);
}

/* As torch's server: the count is a number under the key, which stays. */
TEST_WITH(server_holds_barrier_until_all_clients_came, start_server, stop_server)
{
    int a = dial_2_2(), b = dial_2_2();

    say(a, "12" K("72") TWO "0d 01000000");
    say(b, "0d 02000000");
    hear(b, "02000000");
    hears_nothing(a);
    say(b, "12" K("72") TWO);
    hear(a, "00 01000000"); /* the ping behind the barrier waited */
    hear(b, "00");
    say(b, "03" K("72"));
    hear(b, ONE "32");
    say(a, "12" K("72") TWO); /* later: passes at once */
    hear(a, "00");
    say(b, "03" K("72") "07");
    hear(b, ONE "33" ONE);
    close(a);
    close(b);
}

TEST_WITH(server_cancels_a_barrier, start_server, stop_server)
{
    int a = dial_2_2(), b = dial_2_2();

    waits(a, "12" K("72") "0300000000000000");
    say(a, "0c");
    hear(a, "01");
    say(b, "12" K("72") TWO);
    hear(b, "00"); /* a participant that gave up counts */
    say(a, "0d 05000000");
    hear(a, "05000000");
    close(a);
    close(b);
}

/* A connection without a socket: counts the bytes of its answers. */
static void count_bytes(void *arg, const void *data, size_t len)
{
    (void)data;
    *(size_t *)arg += len;
}

static bool never_full(void *arg)
{
    (void)arg;
    return false;
}

static void not_closed(void *arg, const char *why)
{
    (void)arg;
    fail_msg("closed: %s", why);
}

TEST_WITH(server_wakes_no_waiter_that_left_a_barrier, start_server, stop_server)
{
    static const struct store_session_ops ops = { count_bytes, never_full, not_closed };
    struct store_session *s[3];
    struct store_hub hub;
    size_t got[3] = { 0 };
    unsigned char raw[64];
    size_t n = unhex("00 cef7853c 12" K("73") "0300000000000000", raw);

    assert_int_equal(store_hub_init(&hub, 0), TENREC_OK);
    for (size_t i = 0; i < 3; i++) {
        s[i] = store_session_new(&hub, &ops, &got[i]);
        store_session_feed(s[i], raw, n);
        if (i == 0)
            store_session_drop(s[0]);
        assert_int_equal(got[i], i == 2);
    }
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 1);
    store_session_drop(s[1]);
    store_session_drop(s[2]);
    store_hub_finish(&hub);
}

TEST_WITH(server_cancels_a_wait, start_server, stop_server)
{
    int a = dial_2_2(), b = dial_2_2();

    waits(a, "06" TWO K("77") K("78"));
    say(a, "0c");
    hear(a, "01");
    say(b, "01" K("77") ONE "31 01" K("78") ONE "31 0d 00000000");
    hear(b, "00000000");
    say(a, "0d 05000000");
    hear(a, "05000000"); /* no answer to the wait in between */
    close(a);
    close(b);
}

TEST_WITH(server_wakes_waiters_by_any_way_to_set, start_server, stop_server)
{
    static const char *const ways[] = {
        "01" K("77") ONE "31", "02" K("77") NONE ONE "31", "04" K("77") ONE,
        "09" K("77") ONE "31", "0b" ONE K("77") ONE "31",
    };
    int a = dial_2_2(), b = dial_2_2();

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        waits(a, "06" TWO K("77") K("76"));
        say(b, ways[i]);
        say(b, "01" K("76") ONE "31");
        hear(a, "00");
        say(a, "08" K("77") "08" K("76"));
        hear(a, ONE ONE);
    }
    close(a);
    close(b);
}

TEST_WITH(server_tells_changes_of_a_watched_key_1_13, start_server, stop_server)
{
    int a = dial(), b = dial();

    say(a, "07" K("75")); /* WATCH_KEY */
    hear(a, "03");
    say(b, "00" K("75") ONE "31"); /* created */
    hear(a, "01" K("75") NONE ONE "31");
    say(b, "00" K("75") ONE "32"); /* updated */
    hear(a, "00" K("75") ONE "31" ONE "32");
    say(b, "08" K("75")); /* deleted */
    hear(a, "02" K("75") ONE "32" NONE);
    close(a);
    close(b);
}

#define REQUESTS "1000000000000000 2f74656e7265632e7265717565737473" /* /tenrec.requests */

TEST_WITH(server_tells_how_many_requests_it_has_answered, start_server, stop_server)
{
    int fd = dial_2_2(); /* VALIDATE and PING */

    say(fd, "03" REQUESTS);
    hear(fd, ONE "32");
    say(fd, "07"); /* GETNUMKEYS: it has become a key */
    hear(fd, ONE);
    say(fd, "0b" TWO K("61") ONE "31" K("62") ONE "31"); /* MULTI_SET is one request */
    say(fd, "05" ONE REQUESTS);                          /* CHECK */
    hear(fd, "00");
    say(fd, "0a" ONE REQUESTS); /* MULTI_GET */
    hear(fd, ONE "36");
    close(fd);
}
