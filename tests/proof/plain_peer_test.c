/* SPDX-License-Identifier: Apache-2.0 */
/* plain_peer_test.c - which connections count as ours: by real sockets, some of them of another
 * user, which only root can make. */
#include "../testing.h"

#include "security/proof/security.h"

#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

struct ends {
    struct sockaddr_storage theirs, ours;
    int listener, dialled, accepted; /* -1: none */
};

static int listen_at(int family, const struct in6_addr *at6, struct ends *e)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    struct sockaddr_in6 all = { .sin6_family = AF_INET6, .sin6_addr = *at6 };
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), none = 0;
    socklen_t len = sizeof e->ours;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
    assert_int_equal(bind(fd, family == AF_INET6 ? (void *)&all : (void *)&at,
                          family == AF_INET6 ? sizeof all : sizeof at),
                     0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&e->ours, &len), 0);
    return fd;
}

/* Connects within `family_to`, of which IPv4 also reaches a listener of IPv6. */
static int dial(const struct ends *e, int family_to)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(family_to, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_port = to6.sin6_port = ((const struct sockaddr_in *)(const void *)&e->ours)->sin_port;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, family_to == AF_INET6 ? (void *)&to6 : (void *)&to,
                family_to == AF_INET6 ? sizeof to6 : sizeof to) != 0)
        return -1;
    return fd;
}

static void take(struct ends *e)
{
    socklen_t len = sizeof e->theirs, our_len = sizeof e->ours;

    e->accepted = accept(e->listener, (struct sockaddr *)&e->theirs, &len);
    assert_true(e->accepted >= 0);
    assert_int_equal(getsockname(e->accepted, (struct sockaddr *)&e->ours, &our_len), 0);
}

static void connect_ends(struct ends *e, int family, int family_to)
{
    e->listener = listen_at(family, &in6addr_any, e);
    assert_true((e->dialled = dial(e, family_to)) >= 0);
    take(e);
}

static void close_ends(struct ends *e)
{
    close(e->listener);
    if (e->dialled >= 0)
        close(e->dialled);
    close(e->accepted);
}

static tenrec_status owner_of(const struct ends *e, uid_t *ret, tenrec_error *err)
{
    return socket_owner_find((const struct sockaddr *)&e->theirs, (const struct sockaddr *)&e->ours,
                             ret, err);
}

static tenrec_status check(const struct ends *e, enum security_plain plain, tenrec_error *err)
{
    return plain_peer_check(plain, (const struct sockaddr *)&e->theirs,
                            (const struct sockaddr *)&e->ours, err);
}

TEST(owner_is_found_in_each_family)
{
    static const int family[][2] = { { AF_INET, AF_INET },
                                     { AF_INET6, AF_INET },
                                     { AF_INET6, AF_INET6 } };

    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        struct ends e;
        uid_t user = 4711;
        tenrec_error err;
        connect_ends(&e, family[i][0], family[i][1]);
        assert_status(owner_of(&e, &user, &err), &err);
        assert_int_equal(user, geteuid());
        close_ends(&e);
    }
}

/* The kernel counts such a socket as root's. */
TEST(owner_of_a_closed_socket_is_unknown)
{
    struct ends e;
    uid_t user;
    tenrec_error err;

    connect_ends(&e, AF_INET, AF_INET);
    assert_int_equal(send(e.dialled, "x", 1, MSG_NOSIGNAL), 1);
    close(e.dialled);
    e.dialled = -1;
    assert_int_equal(owner_of(&e, &user, &err), TENREC_ENOTFOUND);
    assert_int_equal(check(&e, PLAIN_SAME_USER, &err), TENREC_EPERM);
    close_ends(&e);
}

TEST(owner_of_a_half_closed_socket_is_unknown)
{
    struct ends e;
    uid_t user;
    tenrec_error err;

    connect_ends(&e, AF_INET, AF_INET);
    assert_int_equal(shutdown(e.dialled, SHUT_WR), 0);
    assert_int_equal(owner_of(&e, &user, &err), TENREC_ENOTFOUND);
    close_ends(&e);
}

/* A stranger's port may be that of a listener here. */
TEST(owner_is_not_that_of_a_listener_at_the_same_port)
{
    struct ends e, other = { .dialled = -1 };
    uid_t user;
    tenrec_error err;

    connect_ends(&e, AF_INET, AF_INET);
    other.listener = listen_at(AF_INET, &in6addr_any, &other);
    ((struct sockaddr_in *)&e.theirs)->sin_port = ((struct sockaddr_in *)&other.ours)->sin_port;
    assert_int_equal(owner_of(&e, &user, &err), TENREC_ENOTFOUND);
    close(other.listener);
    close_ends(&e);
}

TEST(owner_of_an_address_elsewhere_is_unknown)
{
    struct ends e;
    uid_t user;
    tenrec_error err;

    connect_ends(&e, AF_INET, AF_INET);
    ((struct sockaddr_in *)&e.theirs)->sin_addr.s_addr = htonl(0xc0000207); /* 192.0.2.7 */
    assert_int_equal(owner_of(&e, &user, &err), TENREC_ENOTFOUND);
    assert_int_equal(check(&e, PLAIN_SAME_USER, &err), TENREC_EPERM);
    assert_text_has(err.text, "no process of our user");
    assert_int_equal(check(&e, PLAIN_LOOPBACK, &err), TENREC_EPERM);
    assert_text_has(err.text, "beyond loopback");
    assert_int_equal(check(&e, PLAIN_ALL, &err), TENREC_OK);
    close_ends(&e);
}

TEST(plain_peer_of_our_user_is_let_in_unless_none_is)
{
    struct ends e;
    tenrec_error err;

    connect_ends(&e, AF_INET6, AF_INET);
    assert_status(check(&e, PLAIN_SAME_USER, &err), &err);
    assert_status(check(&e, PLAIN_LOOPBACK, &err), &err);
    assert_status(check(&e, PLAIN_ALL, &err), &err);
    assert_int_equal(check(&e, PLAIN_NONE, &err), TENREC_EPERM);
    close_ends(&e);
}

/* Connects as another user, and holds the connection until `until` ends. */
static pid_t nobody_dials(const struct ends *e, const int until[2])
{
    pid_t child = fork();
    char byte;

    if (child != 0)
        return child;
    close(until[1]);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || dial(e, AF_INET) < 0)
        _exit(1);
    (void)!read(until[0], &byte, 1);
    _exit(0);
}

TEST(plain_peer_of_another_user_is_let_in_by_loopback_and_all_only)
{
    struct ends e = { .dialled = -1 };
    uid_t user;
    int until[2], status;
    pid_t child;
    tenrec_error err;

    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(until), 0);
    e.listener = listen_at(AF_INET, &in6addr_any, &e);
    child = nobody_dials(&e, until);
    assert_true(child > 0);
    take(&e);
    assert_status(owner_of(&e, &user, &err), &err);
    assert_int_equal(user, NOBODY);
    assert_int_equal(check(&e, PLAIN_SAME_USER, &err), TENREC_EPERM);
    assert_text_has(err.text, "user 65534");
    assert_status(check(&e, PLAIN_LOOPBACK, &err), &err);
    assert_status(check(&e, PLAIN_ALL, &err), &err);
    assert_int_equal(check(&e, PLAIN_NONE, &err), TENREC_EPERM);
    close(until[1]);
    close(until[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close_ends(&e);
}
