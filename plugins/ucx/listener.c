/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - the end of a listener.
 *
 * When UCX 1.13 destroys a listener, it forgets the accepted connections that have not sent
 * anything yet. Data that arrives on one later makes UCX's thread use the freed listener and crash,
 * so these connections are closed first. */
#include "ucx.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUIET_MS = 100 };

static uint16_t listener_port(int fd)
{
    struct sockaddr_storage at = { 0 };
    socklen_t len = sizeof at;

    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    if (at.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

/* A second descriptor of a socket of the port, -1 if it is none: UCX's thread may close the first
 * one at any time, and its number may become that of another socket. */
static int listener_hold(int fd, uint16_t port)
{
    int own;

    if (listener_port(fd) != port)
        return -1;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0 && listener_port(own) != port) {
        close(own);
        own = -1;
    }
    return own;
}

/* Shuts the sockets of the port down, which UCX's thread notices. Returns the number of sockets
 * that were accepted: it closes them. */
static int listener_shut_down(uint16_t port)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    int n = 0;

    while (all && (entry = readdir(all)) != NULL) {
        const int fd = entry->d_name[0] == '.' ? -1 : listener_hold(atoi(entry->d_name), port);
        int listens = 0;
        socklen_t len = sizeof listens;

        if (fd < 0)
            continue;
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
        shutdown(fd, SHUT_RDWR);
        close(fd);
        n += !listens;
    }
    if (all)
        closedir(all);
    return n;
}

void listener_close(struct ucx *u)
{
    const char *colon = strrchr(u->address, ':');
    const uint16_t port = colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;

    for (int ms = 0; port && ms < QUIET_MS && listener_shut_down(port) > 0; ms++) {
        while (
            ucp_worker_progress(u->worker)) /* refuses the connections that UCX has handed over */
            continue;
        poll(NULL, 0, 1);
    }
    ucp_listener_destroy(u->listener);
    u->listener = NULL;
}
