/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/clock.h"
#include "group/membership/membership.h"
#include "torch/member/worker_list.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOK_MS = 1000, CONNECT_MS = 500, LOOKS = 3 };

/* The name between "Token_for_" and "_join" or "_leave". */
static bool holder_name(const char *token, char ret[TENREC_NAME_MAX + 1])
{
    static const char before[] = "Token_for_";
    const char *name = token + strlen(before), *end;

    if (strncmp(token, before, strlen(before)) != 0 || !(end = strrchr(name, '_')) ||
        (strcmp(end, "_join") != 0 && strcmp(end, "_leave") != 0) || end - name > TENREC_NAME_MAX)
        return false;
    snprintf(ret, TENREC_NAME_MAX + 1, "%.*s", (int)(end - name), name);
    return true;
}

/* The error of connecting; 0 if that works, or nothing is known within the time. */
static int connect_error(const struct addrinfo *to, uint64_t deadline_ns)
{
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd wait = { .fd = fd, .events = POLLOUT };
    socklen_t len = sizeof(int);
    int e = 0;

    if (fd < 0)
        return 0;
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0)
        e = errno;
    if (e == EINPROGRESS) {
        e = 0;
        if (poll(&wait, 1, clock_left_ms(deadline_ns)) == 1)
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
    }
    close(fd);
    return e;
}

/* `address`: "uv://IP:PORT". Names of hosts are not looked up: torch writes none. */
static bool is_refused(const char *address, uint64_t deadline_ns)
{
    static const struct addrinfo numbers = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                             .ai_socktype = SOCK_STREAM };
    static const char kind[] = "uv://";
    char text[256], *host = text, *port;
    struct addrinfo *to;
    bool refused;

    if (strncmp(address, kind, strlen(kind)) != 0)
        return false;
    snprintf(text, sizeof text, "%s", address + strlen(kind));
    if (!(port = strrchr(text, ':')))
        return false;
    *port++ = '\0';
    if (*host == '[' && host[strlen(host) - 1] == ']') {
        host[strlen(host) - 1] = '\0';
        host++;
    }
    if (getaddrinfo(host, port, &numbers, &to) != 0)
        return false;
    refused = connect_error(to, deadline_ns) == ECONNREFUSED;
    freeaddrinfo(to);
    return refused;
}

/* The address of the listed worker of that name; "" if there is none. */
static void holder_address(struct tenrec_store *keys, const char *name, uint64_t deadline_ns,
                           char *ret, size_t room)
{
    const struct worker_list_entry *e;
    struct worker_list r;

    *ret = '\0';
    if (worker_list_read(keys, deadline_ns, &r, NULL) != TENREC_OK)
        return;
    e = worker_list_find(&r, name);
    if (e && e->address && strlen(e->address) < room)
        snprintf(ret, room, "%s", e->address);
    worker_list_finish(&r);
}

bool token_holder_is_dead(struct token_holder *h, struct tenrec_store *keys, const char *token,
                          uint64_t deadline_ns)
{
    char name[TENREC_NAME_MAX + 1], address[sizeof h->address];
    uint64_t until_ns = clock_deadline_ms(CONNECT_MS);

    if (strlen(token) >= sizeof h->token || !holder_name(token, name))
        return false;
    if (strcmp(token, h->token) != 0) {
        *h = (struct token_holder){ .next_ns = clock_deadline_ms(LOOK_MS) };
        snprintf(h->token, sizeof h->token, "%s", token);
    }
    if (!clock_passed(h->next_ns))
        return false;
    h->next_ns = clock_deadline_ms(LOOK_MS);
    holder_address(keys, name, deadline_ns, address, sizeof address);
    if (strcmp(address, h->address) != 0) {
        snprintf(h->address, sizeof h->address, "%s", address);
        h->refused = 0;
    }
    h->refused =
        is_refused(address, until_ns < deadline_ns ? until_ns : deadline_ns) ? h->refused + 1 : 0;
    return h->refused >= LOOKS;
}
