/* SPDX-License-Identifier: Apache-2.0 */
/* listen_test.c - the addresses on which an agent listens. */
#include "raw.h"

#include "node.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(listen_works_over_ipv6)
{
    struct node n[2];

    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.family = "ipv6";
        node_open(&n[i]);
    }
    assert_non_null(strstr(n[0].address, "uv://[::1]:"));
    nodes_start(n, 2);
    for (int i = 0; i < 10; i++)
        assert_ping(&n[0], 1);
    group_close(n, 2);
}

TEST(listen_listens_on_an_interface_and_in_a_port_range)
{
    struct node n[2];
    char range[32];

    node_init(&n[0], 0);
    n[0].options.ifname = "lo";
    node_open(&n[0]);
    assert_non_null(strstr(n[0].address, "uv://127.0.0.1:"));
    /* The first port of the range is taken. */
    snprintf(range, sizeof range, "%s-65535", strrchr(n[0].address, ':') + 1);
    node_init(&n[1], 1);
    n[1].options.listen = "127.0.0.1";
    n[1].options.port = range;
    node_open(&n[1]);
    assert_string_not_equal(n[0].address, n[1].address);
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

TEST(listen_takes_the_first_interface_that_fits)
{
    const char *const wanted[] = { "nosuch0,lo", "nosuch0, l*", "127.0.0.0/8", "::1/128,lo",
                                   "127.0.0.1/32" };

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct node n;

        node_init(&n, 0);
        n.options.ifname = wanted[i];
        node_open(&n);
        assert_non_null(strstr(n.address, *wanted[i] == ':' ? "uv://[::1]:" : "uv://127.0.0.1:"));
        nodes_start(&n, 1);
        group_close(&n, 1);
    }
}

static void assert_refused(const char *ifname, const char *listen_at, const char *port,
                           const char *text)
{
    struct tenrec_init in = { .size = sizeof in, .name = "w" };
    tenrec_error err = { .code = TENREC_OK };
    struct node n;

    node_init(&n, 0);
    n.options.ifname = ifname;
    n.options.listen = listen_at;
    n.options.port = port;
    n.agent.host = &n.host;
    in.options = &n.options;
    if (tenrec_construct_options(&n.options, &err) == TENREC_OK)
        assert_int_not_equal(tenrec_init_agent(&in, &n.agent, &err), TENREC_OK);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

TEST(listen_refuses_unusable_addresses)
{
    assert_refused("nosuch0", "", "0", "fits \"nosuch0\"; there are lo (127.0.0.1");
    assert_refused("^*", "", "0", "fits \"^*\"; there are lo");
    assert_refused("127.0.0.1/33", "", "0", "is no subnet");
    assert_refused("fd00:/64", "", "0", "is no subnet");
    assert_refused("eth0,^lo", "", "0", "the ^ has to stand first");
    assert_refused("^", "", "0", "names no interface");
    assert_refused("", "0.0.0.0", "0", "no address that others could connect to");
    assert_refused("", "no such host", "0", "listen: \"no such host\"");
    assert_refused("", "192.0.2.1", "0", "cannot listen on 192.0.2.1:0");
    assert_refused("lo", "127.0.0.1", "0", "exclude each other");
    assert_refused("", "", "http", "expected a port");
    assert_refused("", "", "70000", "expected a port");
    assert_refused("", "", "9000-8000", "ends before it begins");
}

/* A socket of ours has all of the range, which the kernel gave it from those of connections. */
TEST(listen_names_a_range_whose_ports_are_all_taken)
{
    char address[64], range[32];
    int fd = raw_listen(address);
    const char *port = strrchr(address, ':') + 1;

    snprintf(range, sizeof range, "%s-%s", port, port);
    assert_refused("", "", range, "cannot listen on 127.0.0.1: port \"");
    assert_refused("", "", range, "all 1 are taken, some perhaps by connections");
    assert_refused("", "", range, "net.ipv4.ip_local_port_range");
    close(fd);
}

TEST(listen_refuses_a_link_local_address_without_an_interface)
{
    assert_refused("", "fe80::1", "0", "link-local address \"fe80::1\" needs %interface");
}

/* Reads the setting of a TCP socket of this process; false for another descriptor. Listeners
 * count, too: a connection starts with their setting, and stays paced once it was. */
static bool congestion_control(int fd, char ret[16])
{
    socklen_t text = 16;

    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, ret, &text) == 0;
}

TEST(listen_lets_nothing_slow_a_host_that_talks_to_itself)
{
    const long most = sysconf(_SC_OPEN_MAX) < 4096 ? sysconf(_SC_OPEN_MAX) : 4096;
    struct node n[2];
    unsigned found = 0;
    char name[16];

    node_init(&n[0], 0);
    node_init(&n[1], 1);
    n[0].options.transports.n = n[1].options.transports.n = 1;
    node_open(&n[0]);
    node_open(&n[1]);
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    for (int fd = 3; fd < most; fd++) {
        if (!congestion_control(fd, name))
            continue;
        assert_string_equal(name, "reno");
        found++;
    }
    assert_true(found >= 4); /* two listen, and one connection has two ends */
    group_close(n, 2);
}
