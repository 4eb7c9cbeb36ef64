/* SPDX-License-Identifier: Apache-2.0 */
/* transport.c - transports by name, and addresses of all kinds. */
#include "transport/transport.h"

#include <arpa/inet.h>
#include <net/if.h>

const struct transport *transport_named(const struct transport *const *all, const char *name)
{
    for (const struct transport *const *t = all; *t; t++)
        if (strcmp((*t)->name, name) == 0)
            return *t;
    return NULL;
}

const struct transport *transport_of(const struct transport *const *all, const char *address,
                                     const char **ret_rest)
{
    for (const struct transport *const *t = all; *t; t++) {
        size_t n = strlen((*t)->name);

        if (strncmp(address, (*t)->name, n) == 0 && strncmp(address + n, "://", 3) == 0) {
            *ret_rest = address + n + 3;
            return *t;
        }
    }
    return NULL;
}

void transport_format(const union transport_address *a, char buf[TRANSPORT_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?", scope[IF_NAMESIZE + 1] = "";

    switch (a->any.sa_family) {
    case AF_INET6:
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
        if (a->v6.sin6_scope_id && if_indextoname(a->v6.sin6_scope_id, scope + 1))
            scope[0] = '%';
        snprintf(buf, TRANSPORT_TEXT_MAX, "[%s%s]:%u", host, scope, ntohs(a->v6.sin6_port));
        return;
    case AF_INET:
        inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
        snprintf(buf, TRANSPORT_TEXT_MAX, "%s:%u", host, ntohs(a->v4.sin_port));
        return;
    case AF_UNIX:
        /* A connecting socket has no address of its own. */
        snprintf(buf, TRANSPORT_TEXT_MAX, "%s",
                 a->local.sun_path[0]   ? a->local.sun_path
                 : a->local.sun_path[1] ? a->local.sun_path + 1
                                        : "this host");
        return;
    default:
        snprintf(buf, TRANSPORT_TEXT_MAX, "?");
    }
}

uint16_t transport_port(const union transport_address *a)
{
    return ntohs(a->any.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

void transport_set_port(union transport_address *a, uint16_t port)
{
    if (a->any.sa_family == AF_INET6)
        a->v6.sin6_port = htons(port);
    else
        a->v4.sin_port = htons(port);
}

bool transport_complete(union transport_address *a, uint32_t scope)
{
    if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr))
        return true;
    if (!a->v6.sin6_scope_id)
        a->v6.sin6_scope_id = scope;
    return a->v6.sin6_scope_id != 0;
}

bool transport_same_host(const union transport_address *a, const union transport_address *b)
{
    /* A Unix socket ends on this host, whatever the other address is. */
    if (a->any.sa_family == AF_UNIX || b->any.sa_family == AF_UNIX)
        return true;
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET6)
        return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) == 0;
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}
