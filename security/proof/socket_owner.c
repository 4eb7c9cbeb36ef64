/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/security.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* One end of a connection. IPv4 within IPv6 is IPv4: the other end may have been made so. */
struct owner_end {
    int family;
    uint32_t address[4]; /* network order */
    uint16_t port;       /* network order */
    uint32_t interface;  /* of a link-local address */
};

static bool owner_end_read(const struct sockaddr *from, struct owner_end *ret)
{
    const struct sockaddr_in *in = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;

    *ret = (struct owner_end){ .family = from->sa_family };
    if (from->sa_family == AF_INET) {
        memcpy(ret->address, &in->sin_addr, sizeof in->sin_addr);
        ret->port = in->sin_port;
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    ret->port = in6->sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        ret->family = AF_INET;
        memcpy(ret->address, &in6->sin6_addr.s6_addr[12], 4);
        return true;
    }
    memcpy(ret->address, &in6->sin6_addr, sizeof in6->sin6_addr);
    ret->interface = in6->sin6_scope_id;
    return true;
}

struct owner_answer {
    struct nlmsghdr head;
    union {
        struct nlmsgerr error;
        struct inet_diag_msg found;
        char room[512];
    };
};

static tenrec_status owner_ask(int fd, const struct inet_diag_req_v2 *ask, struct owner_answer *ret,
                               tenrec_error *err)
{
    const struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
    } request = { { .nlmsg_len = sizeof request,
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST },
                  *ask };
    const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    struct sockaddr_nl from = { .nl_family = AF_NETLINK };
    socklen_t from_len = sizeof from;
    ssize_t n = sendto(fd, &request, sizeof request, MSG_DONTWAIT, (const struct sockaddr *)&kernel,
                       sizeof kernel);

    if (n == (ssize_t)sizeof request)
        n = recvfrom(fd, ret, sizeof *ret, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
    if (n < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot ask the kernel for the user");
    if (from.nl_pid != 0 || (size_t)n < NLMSG_LENGTH(sizeof ret->error) ||
        ret->head.nlmsg_len > (size_t)n)
        return tenrec_fail(err, TENREC_EOS, "the kernel's answer is malformed");
    if (ret->head.nlmsg_type == NLMSG_ERROR && ret->error.error == -ENOENT)
        return tenrec_fail(err, TENREC_ENOTFOUND, "no process of this host holds the other end");
    if (ret->head.nlmsg_type == NLMSG_ERROR)
        return tenrec_fail_errno(err, TENREC_EOS, -ret->error.error,
                                 "the kernel does not report the user");
    if (ret->head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        ret->head.nlmsg_len < NLMSG_LENGTH(sizeof ret->found))
        return tenrec_fail(err, TENREC_EOS, "the kernel's answer is malformed");
    return TENREC_OK;
}

/* Asks for a socket that a process holds. One that its process has closed counts as root's, a
 * listening one may be found in its place: neither is established with an inode. */
static tenrec_status owner_ask_open(int fd, const struct inet_diag_req_v2 *ask,
                                    struct inet_diag_msg *ret, tenrec_error *err)
{
    struct owner_answer answer = { .head = { .nlmsg_len = 0 } };
    tenrec_status st = owner_ask(fd, ask, &answer, err);

    if (st != TENREC_OK)
        return st;
    *ret = answer.found;
    if (ret->idiag_state != TCP_ESTABLISHED || ret->idiag_inode == 0 ||
        ret->id.idiag_sport != ask->id.idiag_sport || ret->id.idiag_dport != ask->id.idiag_dport)
        return tenrec_fail(err, TENREC_ENOTFOUND, "no process of this host holds the other end");
    return TENREC_OK;
}

tenrec_status socket_owner_find(const struct sockaddr *theirs, const struct sockaddr *ours,
                                uid_t *ret, tenrec_error *err)
{
    struct inet_diag_req_v2 ask = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = UINT32_MAX };
    struct inet_diag_msg found, again;
    struct owner_end from, to;
    tenrec_status st;
    int fd;

    if (!owner_end_read(theirs, &from) || !owner_end_read(ours, &to) || from.family != to.family)
        return tenrec_fail(err, TENREC_ENOTFOUND, "the other end has no address of this host");
    ask.sdiag_family = (uint8_t)from.family;
    ask.id =
        (struct inet_diag_sockid){ .idiag_sport = from.port,
                                   .idiag_dport = to.port,
                                   .idiag_if = from.interface,
                                   .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } };
    memcpy(ask.id.idiag_src, from.address, sizeof from.address);
    memcpy(ask.id.idiag_dst, to.address, sizeof to.address);
    fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot ask the kernel for the user");
    /* The kernel reads state and user one after the other, while a process may close the socket.
     * If the same socket is still open at the second answer, it was during the first. */
    st = owner_ask_open(fd, &ask, &found, err);
    if (st == TENREC_OK) {
        memcpy(ask.id.idiag_cookie, found.id.idiag_cookie, sizeof ask.id.idiag_cookie);
        st = owner_ask_open(fd, &ask, &again, err);
    }
    close(fd);
    if (st == TENREC_OK)
        *ret = found.idiag_uid;
    return st;
}
