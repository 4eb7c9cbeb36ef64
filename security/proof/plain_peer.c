/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/security.h"

#include "security/secret/secret.h"

#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

static bool plain_is_loopback(const struct sockaddr *at)
{
    const struct sockaddr_in *in = (const void *)at;
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr;

    if (at->sa_family == AF_INET)
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (at->sa_family != AF_INET6)
        return false;
    return IN6_IS_ADDR_LOOPBACK(in6) ||
           (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == IN_LOOPBACKNET);
}

static tenrec_status plain_check_user(const struct sockaddr *theirs, const struct sockaddr *ours,
                                      tenrec_error *err)
{
    uid_t user = 0;
    tenrec_error why;
    tenrec_status st = socket_owner_find(theirs, ours, &user, &why);

    if (st != TENREC_OK)
        return tenrec_fail(err, TENREC_EPERM,
                           "it proves no membership, and is no process of our user: %s", why.text);
    if (user == 0 || own_user_is(user))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPERM,
                       "it proves no membership, and belongs to user %u, expected %u or root",
                       (unsigned)user, (unsigned)geteuid());
}

tenrec_status plain_peer_check(enum security_plain plain, const struct sockaddr *theirs,
                               const struct sockaddr *ours, tenrec_error *err)
{
    switch (plain) {
    case PLAIN_ALL:
        return TENREC_OK;
    case PLAIN_LOOPBACK:
        if (plain_is_loopback(theirs) && plain_is_loopback(ours))
            return TENREC_OK;
        return tenrec_fail(err, TENREC_EPERM, "it proves no membership, and is beyond loopback");
    case PLAIN_SAME_USER:
        return plain_check_user(theirs, ours, err);
    case PLAIN_NONE:
        break;
    }
    return tenrec_fail(err, TENREC_EPERM, "it proves no membership");
}
