/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/security.h"

#include "security/secret/secret.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* A process of this user or root's; all others are as far as those beyond loopback. */
static tenrec_status plain_socket_check_unix(enum security_plain plain, int fd, tenrec_error *err)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (plain == PLAIN_ALL || plain == PLAIN_LOOPBACK)
        return TENREC_OK;
    if (plain == PLAIN_NONE)
        return tenrec_fail(err, TENREC_EPERM, "it proves no group secret");
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return tenrec_fail_errno(err, TENREC_EPERM, errno,
                                 "it proves no group secret, and its user is unknown");
    if (peer.uid == 0 || own_user_is(peer.uid))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPERM,
                       "it proves no group secret, and belongs to user %u, expected %u or root",
                       (unsigned)peer.uid, (unsigned)geteuid());
}

tenrec_status plain_socket_check(enum security_plain plain, int fd, tenrec_error *err)
{
    struct sockaddr_storage ours = { .ss_family = AF_UNSPEC }, theirs = ours;
    socklen_t ours_len = sizeof ours, theirs_len = sizeof theirs;

    if (getsockname(fd, (struct sockaddr *)&ours, &ours_len) < 0 ||
        getpeername(fd, (struct sockaddr *)&theirs, &theirs_len) < 0)
        return tenrec_fail_errno(err, TENREC_EPERM, errno, "it proves no group secret");
    if (ours.ss_family == AF_UNIX)
        return plain_socket_check_unix(plain, fd, err);
    return plain_peer_check(plain, (const struct sockaddr *)&theirs, (const struct sockaddr *)&ours,
                            err);
}
