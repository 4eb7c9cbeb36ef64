/* SPDX-License-Identifier: Apache-2.0 */
/* store_peers_test.c - accepted connections of a closed store on a loop that the case turns, so
 * that it knows what the server has read, and what time it is. */
#include "../support/secured.h"
#include "served.h"

#include "core/backend/account.h"
#include "core/base/clock.h"
#include "group/store/store_peers.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#define SECOND_NS UINT64_C(1000000000)

static uv_loop_t loop;
static uv_tcp_t listener;
static struct store_peers *peers;
static size_t n_accepted;

static void count(void *arg, int delta)
{
    (void)arg, (void)delta;
}

static void on_dialled(uv_stream_t *stream, int status)
{
    assert_int_equal(status, 0);
    assert_true(store_peers_accept(peers, stream));
    n_accepted++;
}

static void begin(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    int len = sizeof at;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    n_accepted = 0;
    assert_non_null(peers = calloc(1, sizeof *peers));
    peers->security = secured("the secret of this group", PLAIN_SAME_USER);
    peers->count = count;
    assert_int_equal(store_hub_init(&peers->hub, 0), TENREC_OK);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_tcp_init(&loop, &listener), 0);
    assert_int_equal(uv_tcp_bind(&listener, (const struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&listener, 64, on_dialled), 0);
    assert_int_equal(uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &len), 0);
    served_port = ntohs(at.sin_port);
}

static void end(void)
{
    store_peers_drop(peers);
    uv_close((uv_handle_t *)&listener, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    store_hub_finish(&peers->hub);
    security_drop(peers->security);
    free(peers);
}

static bool turned(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    return true;
}

TEST_WITH(slow_proof_is_closed_at_its_deadline, begin, end)
{
    const uint64_t now_ns = clock_now_ns();
    int fd = dial(), plain = dial();

    say(plain, HELLO);
    assert_becomes(turned() && peers->n == 1 && peers->n_strangers == 1);
    say(fd, "54");
    turned();
    store_peers_expire(peers, now_ns + 9 * SECOND_NS);
    assert_int_equal(peers->n_strangers, 1);
    say(fd, "4e");
    turned();
    store_peers_expire(peers, clock_now_ns() + 11 * SECOND_NS);
    assert_int_equal(peers->n_strangers, 0);
    assert_int_equal(peers->n, 1); /* an idle client is no stranger */
    turned();
    is_closed(fd);
    close(plain);
}

/* Its process has closed the socket, which the kernel then counts as root's. */
TEST_WITH(request_of_a_closed_socket_is_not_run, begin, end)
{
    int fd = dial();

    say(fd, HELLO "01" K("61") ONE "31");
    close(fd);
    assert_becomes(turned() && n_accepted == 1 && peers->n_strangers == 0);
    assert_int_equal(peers->n, 0);
    assert_int_equal(peers->hub.table.n_keys, 0);
}

/* From an address of this host that is not the usual one, and so has a limit. */
static int dial_from_elsewhere(const struct sockaddr_in *us)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(served_port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)us, sizeof *us), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

TEST_WITH(connection_is_refused_when_its_address_has_begun_too_many_proofs, begin, end)
{
    const uint64_t later_ns = clock_now_ns() + 3600 * SECOND_NS;
    struct sockaddr_in us = { .sin_family = AF_INET };
    struct tenrec_account *s;
    int fd, here;

    us.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    s = store_peers_source((const struct sockaddr *)&us);
    while (source_may_prove(s, STORE_PROOFS, later_ns))
        ;
    fd = dial_from_elsewhere(&us);
    here = dial();
    assert_becomes(turned() && n_accepted == 2);
    assert_int_equal(peers->n_strangers, 1); /* that from here */
    turned();
    is_closed(fd);
    close(here);
    account_close(s);
}

/* By `store_plain: same_user`. */
TEST_WITH(address_has_no_limit_of_proofs_while_its_client_is_connected, begin, end)
{
    const uint64_t now_ns = clock_now_ns();
    struct sockaddr_in us = { .sin_family = AF_INET };
    struct tenrec_account *s;
    int fd;

    us.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 2);
    fd = dial_from_elsewhere(&us);
    say(fd, HELLO);
    assert_becomes(turned() && peers->n == 1);
    s = store_peers_source((const struct sockaddr *)&us);
    for (unsigned i = 0; i <= STORE_PROOFS; i++)
        assert_true(source_may_prove(s, STORE_PROOFS, now_ns));
    account_close(s);
    close(fd);
}
