/* SPDX-License-Identifier: Apache-2.0 */
/* fallback.c - the warning that UCX carries messages to another host over TCP. UCX itself says
 * nothing, and the worker is slow. */
#include "conn.h"

#include "resources.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool is_tcp_meant(const struct ucx_options *o)
{
    const char *variable = secure_getenv("UCX_TLS");

    if (variable)
        return lanes_list_names_tcp(variable);
    for (size_t i = 0; i < o->tls.n; i++)
        if (lanes_list_names_tcp(o->tls.v[i].s))
            return true;
    return false;
}

/* A connection within one host has one address at both ends. */
static bool is_other_host(ucp_ep_h ep)
{
    ucp_ep_attr_t attr = { .field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR |
                                         UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR };
    const struct sockaddr_in *a4 = (const void *)&attr.local_sockaddr;
    const struct sockaddr_in *b4 = (const void *)&attr.remote_sockaddr;
    const struct sockaddr_in6 *a6 = (const void *)&attr.local_sockaddr;
    const struct sockaddr_in6 *b6 = (const void *)&attr.remote_sockaddr;

    if (ucp_ep_query(ep, &attr) != UCS_OK || a4->sin_family != b4->sin_family)
        return false;
    if (a4->sin_family == AF_INET)
        return a4->sin_addr.s_addr != b4->sin_addr.s_addr;
    return a4->sin_family == AF_INET6 && memcmp(&a6->sin6_addr, &b6->sin6_addr, 16) != 0;
}

static void fallback_why(struct ucx *u, char why[RESOURCES_WHY])
{
    struct resources ours = { NULL }, all = { NULL };
    char fast[130];
    tenrec_error err;

    if (resources_read(u->context, &ours, &err) != TENREC_OK ||
        resources_find(NULL, &all, &err) != TENREC_OK)
        snprintf(why, RESOURCES_WHY, "%.200s", err.text);
    else if (resources_find_fast(&ours, fast))
        snprintf(why, RESOURCES_WHY,
                 "this host offers %s, so the other offers none that reaches it", fast);
    else if (resources_find_fast(&all, fast))
        snprintf(why, RESOURCES_WHY,
                 "the options tls and devices, or UCX_TLS and UCX_NET_DEVICES, leave out %s", fast);
    else
        resources_why_no_ib(&all, why);
    resources_drop(&ours);
    resources_drop(&all);
}

void fallback_check(struct conn *c)
{
    struct ucx *u = c->u;
    char why[RESOURCES_WHY];

    if (u->warned || u->me == TENREC_ANONYMOUS || c->peer == TENREC_ANONYMOUS ||
        !lanes_are_tcp(c->shared.lanes) || is_tcp_meant(u->opt) || !is_other_host(c->ep))
        return;
    u->warned = true;
    fallback_why(u, why);
    u->host->log(u->self, TENREC_LOG_WARN,
                 "UCX fell back to TCP: %s is on another host, and its messages go by %s. Here: "
                 "%s. ucx_info -d lists the devices of a host; tls: [tcp] or UCX_TLS with tcp says "
                 "that TCP is meant",
                 c->label, c->shared.lanes, why);
}
