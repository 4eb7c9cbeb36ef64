/* SPDX-License-Identifier: Apache-2.0 */
/* socket_owner.c - finds the process at the other end of a TCP connection.
 *
 * A Unix socket names it (SO_PEERCRED). For TCP on this machine the kernel is asked
 * for the socket at the other end, and the process that claims it is looked
 * through for a descriptor of that socket. */
#include "transport/transport.h"
#include "transport/transport_local.h"

#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define ESTABLISHED 1 /* of the kernel's states of TCP */

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static void question_put_address(const union transport_address *a, __be16 *ret_port, __be32 ret[4])
{
    if (a->any.sa_family == AF_INET6) {
        *ret_port = a->v6.sin6_port;
        memcpy(ret, &a->v6.sin6_addr, sizeof a->v6.sin6_addr);
    } else {
        *ret_port = a->v4.sin_port;
        memcpy(ret, &a->v4.sin_addr, sizeof a->v4.sin_addr);
    }
}

/* The socket whose peer is `fd`. */
static bool socket_question(int fd, struct question *q)
{
    union transport_address here, there;
    socklen_t here_len = sizeof here, there_len = sizeof there;

    memset(q, 0, sizeof *q);
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    if (getsockname(fd, &here.any, &here_len) || getpeername(fd, &there.any, &there_len) ||
        (here.any.sa_family != AF_INET && here.any.sa_family != AF_INET6))
        return false;
    q->head.nlmsg_len = sizeof *q;
    q->head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    q->head.nlmsg_flags = NLM_F_REQUEST;
    q->body.sdiag_family = (__u8)here.any.sa_family;
    q->body.sdiag_protocol = IPPROTO_TCP;
    q->body.idiag_states = 1u << ESTABLISHED;
    question_put_address(&there, &q->body.id.idiag_sport, q->body.id.idiag_src);
    question_put_address(&here, &q->body.id.idiag_dport, q->body.id.idiag_dst);
    q->body.id.idiag_cookie[0] = q->body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return true;
}

/* Returns its inode, 0 when there is no such socket on this machine; and its user. */
static unsigned long socket_ask(const struct question *q, uid_t *ret_user)
{
    const struct timeval limit = { 1, 0 };
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg body;
        char more[1024];
    } answer;
    unsigned long inode = 0;
    int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    *ret_user = (uid_t)-1;
    if (s < 0)
        return 0;
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (send(s, q, sizeof *q, 0) == (ssize_t)sizeof *q &&
        recv(s, &answer, sizeof answer, 0) >= (ssize_t)NLMSG_LENGTH(sizeof answer.body) &&
        answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY)
        inode = answer.body.idiag_inode;
    if (inode)
        *ret_user = answer.body.idiag_uid;
    close(s);
    return inode;
}

/* Returns true if that process has a descriptor of the socket. */
static bool process_holds(pid_t pid, unsigned long inode)
{
    char folder[64], path[64 + 256], want[64], link[64];
    const struct dirent *entry;
    bool found = false;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    d = opendir(folder);
    while (d && !found && (entry = readdir(d)) != NULL) {
        ssize_t n;

        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n = readlink(path, link, sizeof link - 1);
        if (n < 0)
            continue;
        link[n] = '\0';
        found = strcmp(link, want) == 0;
    }
    if (d)
        closedir(d);
    return found;
}

bool socket_is_held_by(pid_t pid, int fd)
{
    struct question q;
    uid_t user;
    unsigned long inode = socket_question(fd, &q) ? socket_ask(&q, &user) : 0;

    return inode && process_holds(pid, inode);
}

bool socket_is_our_users(int fd)
{
    struct question q;
    uid_t user;

    return socket_question(fd, &q) && socket_ask(&q, &user) && user == geteuid();
}
