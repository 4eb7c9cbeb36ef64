/* SPDX-License-Identifier: Apache-2.0 */
/* store_peers_test.c - accepted connections of a closed store on a loop that the case turns, so
 * that it knows what the server has read, and what time it is. */
#include "../support/secured.h"
#include "served.h"

#include "base/clock.h"
#include "store_server/store_peers.h"

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
