/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/meeting.h"

#include "core/base/resolve.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

int advertise_address_is_loopback(const char *host)
{
    return *host && this_host_has(host);
}

static bool is_local_only(const struct sockaddr *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;

    if (a->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127 || v4->sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

static bool write_address(const struct sockaddr *a, socklen_t len, char ret[ADVERTISE_ADDRESS_MAX])
{
    return getnameinfo(a, len, ret, ADVERTISE_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST) == 0;
}

/* Finds the source address of a datagram to `to`; connecting a datagram socket sends nothing. */
static bool find_route(const struct address *to, char ret[ADVERTISE_ADDRESS_MAX])
{
    struct sockaddr_storage here;
    socklen_t len = sizeof here;
    int fd = socket(to->addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool found;

    memset(&here, 0, sizeof here);
    found = fd >= 0 && connect(fd, (const struct sockaddr *)&to->addr, to->len) == 0 &&
            getsockname(fd, (struct sockaddr *)&here, &len) == 0 &&
            !is_local_only((const struct sockaddr *)&here) &&
            write_address((const struct sockaddr *)&here, len, ret);

    if (fd >= 0)
        close(fd);
    return found;
}

/* Returns 2 for IPv4, 1 for IPv6, 0 for an address that other hosts cannot reach. */
static int address_score(const struct ifaddrs *i)
{
    const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING) ||
        (i->ifa_flags & IFF_LOOPBACK))
        return 0;
    if (i->ifa_addr->sa_family == AF_INET)
        return 2;
    return i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

static void find_first(char ret[ADVERTISE_ADDRESS_MAX])
{
    const struct ifaddrs *best = NULL;
    struct ifaddrs *list;

    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (address_score(i) > (best ? address_score(best) : 0))
            best = i;
    if (best)
        write_address(best->ifa_addr,
                      best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                           : sizeof(struct sockaddr_in6),
                      ret);
    freeifaddrs(list);
}

void advertise_address_find(const char *host, uint16_t port, uint64_t deadline_ns,
                            char ret[ADVERTISE_ADDRESS_MAX])
{
    struct address list[RESOLVE_MAX];
    tenrec_error unused;
    size_t n = 0;

    *ret = '\0';
    if (!*host || advertise_address_is_loopback(host) ||
        resolve_host(host, port, deadline_ns, list, &n, &unused) != TENREC_OK)
        return;
    for (size_t i = 0; i < n; i++)
        if (find_route(&list[i], ret))
            return;
    *ret = '\0';
    find_first(ret);
}
