/* SPDX-License-Identifier: Apache-2.0 */
/* served.c - a TCP store's server in this process, and bytes of its clients. */
#include "served.h"

#include "group/store/store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

static struct tenrec_store_server *server;
uint16_t served_port;

void start_server(void)
{
    tenrec_error err;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &served_port, &err), &err);
}

void start_server_with(struct security *security)
{
    tenrec_error err;

    assert_status(store_server_open(NULL, "127.0.0.1", 0, security, &server, &served_port, &err),
                  &err);
}

void stop_server(void)
{
    tenrec_store_server_drop(server);
}

int dial(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(served_port) };
    struct timeval limit = { .tv_sec = 20 };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    /* Without a limit yet: with one, connect is not restarted after an interrupt. */
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}

size_t unhex(const char *hex, unsigned char *ret)
{
    size_t n = 0;
    unsigned byte;

    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        assert_int_equal(sscanf(hex++, "%2x", &byte), 1);
        ret[n++] = (unsigned char)byte;
    }
    return n;
}

void say(int fd, const char *hex)
{
    unsigned char raw[4096];
    size_t n = unhex(hex, raw);

    assert_int_equal(send(fd, raw, n, MSG_NOSIGNAL), n);
}

void hear(int fd, const char *hex)
{
    unsigned char raw[4096], got[4096];
    size_t n = unhex(hex, raw);

    assert_int_equal(recv_again(fd, got, n, MSG_WAITALL), n);
    assert_memory_equal(got, raw, n);
}

void hears_nothing(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    assert_int_equal(poll(&p, 1, 0), 0);
}

void is_closed(int fd)
{
    char byte;
    ssize_t r = recv_again(fd, &byte, 1, 0);

    assert_true(r == 0 || (r < 0 && errno == ECONNRESET));
    close(fd);
}

int dial_2_2(void)
{
    int fd = dial();

    say(fd, HELLO);
    hear(fd, "78563412");
    return fd;
}

void waits(int fd, const char *hex)
{
    char whole[256];

    snprintf(whole, sizeof whole, "0d 0a0b0c0d %s", hex);
    say(fd, whole); /* one piece: the session that answers the ping has read the rest */
    hear(fd, "0a0b0c0d");
}
