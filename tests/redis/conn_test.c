/* SPDX-License-Identifier: Apache-2.0 */
/* conn_test.c - connecting to servers that do not answer. */
#include "conn.h"

#include "../testing.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUE = 8, LONG_MS = 40000, SHORT_MS = 20000 };

/* At a port whose queue is full Linux drops what asks for a connection. */
struct deaf {
    struct sockaddr_in at;
    int listener, waiting[QUEUE];
};

static struct deaf deaf_open(void)
{
    struct deaf d = { .at = { .sin_family = AF_INET } };
    socklen_t len = sizeof d.at;

    d.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    d.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(d.listener, (struct sockaddr *)&d.at, sizeof d.at), 0);
    assert_int_equal(listen(d.listener, 0), 0);
    assert_int_equal(getsockname(d.listener, (struct sockaddr *)&d.at, &len), 0);
    for (int i = 0; i < QUEUE; i++) {
        d.waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(d.waiting[i], (struct sockaddr *)&d.at, sizeof d.at);
    }
    return d;
}

static void deaf_close(struct deaf *d)
{
    for (int i = 0; i < QUEUE; i++)
        close(d->waiting[i]);
    close(d->listener);
}

/* So that there is time for the next address of the same host. */
TEST(conn_to_an_address_that_is_silent_does_not_use_up_the_deadline)
{
    struct deaf d = deaf_open();
    const struct store_url url = { .at = { { "127.0.0.1", ntohs(d.at.sin_port) } }, .n_hosts = 1 };
    const struct conn_login login = { .url = &url, .user = "", .password = "" };
    const uint64_t since = clock_now_ns();
    struct conn *c = NULL;
    tenrec_error err;

    assert_int_equal(conn_open(&login, clock_deadline_ms(LONG_MS), &c, &err), CONN_AGAIN);
    assert_text_has(err.text, "does not answer");
    assert_true(clock_now_ns() - since < SHORT_MS * UINT64_C(1000000));
    assert_int_equal(conn_open(&login, clock_deadline_ms(50), &c, &err), CONN_LATE);
    deaf_close(&d);
}
