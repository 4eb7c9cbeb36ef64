/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/transport_uv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>

#define LIST_MAX 240 /* bytes of an error that list the interfaces */

/* One item of the option. */
struct want {
    const char *text; /* borrowed */
    size_t len;
    bool is_subnet;
    int family;
    unsigned bits;
    unsigned char net[16];
};

static const unsigned char *bytes_of(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr;
    return (const unsigned char *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
}

static tenrec_status read_subnet(struct want *w, tenrec_error *err)
{
    char copy[INET6_ADDRSTRLEN + 8];
    char *slash, *end;
    unsigned long bits;

    snprintf(copy, sizeof copy, "%.*s", (int)(w->len < sizeof copy ? w->len : sizeof copy),
             w->text);
    slash = strchr(copy, '/');
    if (w->len < sizeof copy && slash) {
        *slash++ = '\0';
        bits = strtoul(slash, &end, 10);
        w->family = strchr(copy, ':') ? AF_INET6 : AF_INET;
        if (*slash >= '0' && *slash <= '9' && !*end && bits <= (w->family == AF_INET6 ? 128 : 32) &&
            inet_pton(w->family, copy, w->net) == 1) {
            w->bits = (unsigned)bits;
            w->is_subnet = true;
            return TENREC_OK;
        }
    }
    return tenrec_fail(err, TENREC_ECONFIG,
                       "ifname: \"%.*s\" is no subnet; write it as 10.1.0.0/16 or fd00::/64",
                       (int)(w->len < 60 ? w->len : 60), w->text);
}

/* Takes the next item off *text; false at the end. */
static bool next_item(const char **text, struct want *ret)
{
    while (**text == ',' || **text == ' ')
        (*text)++;
    *ret = (struct want){ .text = *text, .len = strcspn(*text, ",") };
    *text += ret->len;
    while (ret->len && ret->text[ret->len - 1] == ' ')
        ret->len--;
    return ret->len > 0;
}

static tenrec_status read_item(struct want *w, tenrec_error *err)
{
    return memchr(w->text, '/', w->len) ? read_subnet(w, err) : TENREC_OK;
}

static bool is_in(const struct want *w, const struct sockaddr *a)
{
    const unsigned char *b;
    unsigned whole = w->bits / 8, rest = w->bits % 8;

    if (a->sa_family != w->family)
        return false;
    b = bytes_of(a);
    if (memcmp(b, w->net, whole) != 0)
        return false;
    return !rest || (b[whole] ^ w->net[whole]) >> (8 - rest) == 0;
}

static bool interface_fits(const struct want *w, const struct ifaddrs *i)
{
    size_t len = w->len;

    if (w->is_subnet)
        return i->ifa_addr && is_in(w, i->ifa_addr);
    if (w->text[len - 1] == '*')
        return strncmp(i->ifa_name, w->text, len - 1) == 0;
    return strlen(i->ifa_name) == len && strncmp(i->ifa_name, w->text, len) == 0;
}

/* How good an address is, 0 for one that cannot be used at all. */
static int interface_worth(const struct ifaddrs *i, int family)
{
    int f = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
    const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

    if ((f != AF_INET && f != AF_INET6) || (family != AF_UNSPEC && family != f) ||
        !(i->ifa_flags & IFF_UP))
        return 0;
    if (f == AF_INET)
        return 3;
    return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 1 : 2;
}

/* All but what fits one of the items. */
static bool is_left(const char *items, const struct ifaddrs *i, tenrec_error *err)
{
    struct want w;

    while (next_item(&items, &w))
        if (read_item(&w, err) == TENREC_OK && interface_fits(&w, i))
            return false;
    return !(i->ifa_flags & IFF_LOOPBACK);
}

/* The best of those that fit `w`; NULL: of those that fit none of `items`. */
static const struct ifaddrs *best_of(const struct ifaddrs *list, const struct want *w,
                                     const char *items, int family)
{
    const struct ifaddrs *best = NULL;
    tenrec_error unused;

    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (interface_worth(i, family) > (best ? interface_worth(best, family) : 0) &&
            (w ? interface_fits(w, i) : is_left(items, i, &unused)))
            best = i;
    return best;
}

/* "lo (127.0.0.1, ::1), eth0 (10.1.0.2)", cut where it gets long. */
static void tell_all(const struct ifaddrs *list, char ret[LIST_MAX])
{
    char address[INET6_ADDRSTRLEN];
    size_t n = 0;

    *ret = '\0';
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        bool first = true;

        for (const struct ifaddrs *k = list; k != i; k = k->ifa_next)
            first &= strcmp(k->ifa_name, i->ifa_name) != 0;
        if (!first)
            continue;
        if (n > LIST_MAX - 70 - IF_NAMESIZE) {
            snprintf(ret + n, LIST_MAX - n, ", ...");
            return;
        }
        n += (size_t)snprintf(ret + n, LIST_MAX - n, "%s%s", n ? ", " : "", i->ifa_name);
        for (const struct ifaddrs *k = i; k; k = k->ifa_next)
            if (interface_worth(k, AF_UNSPEC) > 1 && !strcmp(k->ifa_name, i->ifa_name) &&
                n < LIST_MAX - 60) {
                inet_ntop(k->ifa_addr->sa_family, bytes_of(k->ifa_addr), address, sizeof address);
                n += (size_t)snprintf(ret + n, LIST_MAX - n, "%s%s", first ? " (" : ", ", address);
                first = false;
            }
        if (!first)
            n += (size_t)snprintf(ret + n, LIST_MAX - n, ")");
    }
}

tenrec_status interface_check(const char *wanted, tenrec_error *err)
{
    const char *items = wanted + (*wanted == '^');
    tenrec_status st = TENREC_OK;
    struct want w;
    bool any = false;

    while (st == TENREC_OK && next_item(&items, &w)) {
        any = true;
        if (*w.text == '^')
            return tenrec_fail(err, TENREC_ECONFIG,
                               "ifname: in \"%s\" the ^ has to stand first, and is for all of it",
                               wanted);
        st = read_item(&w, err);
    }
    if (st == TENREC_OK && !any)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "ifname: \"%s\" names no interface; write eth0, eth*, 10.1.0.0/16 or "
                           "^docker0",
                           wanted);
    return st;
}

tenrec_status interface_pick(const char *wanted, int family, union transport_address *ret,
                             tenrec_error *err)
{
    const struct ifaddrs *best = NULL;
    const char *items = wanted;
    struct ifaddrs *list;
    char all[LIST_MAX];
    struct want w;
    tenrec_status st = interface_check(wanted, err);

    if (st != TENREC_OK)
        return st;
    if (getifaddrs(&list) < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot list the network interfaces");
    if (*wanted == '^')
        best = best_of(list, NULL, wanted + 1, family);
    else
        while (!best && next_item(&items, &w))
            best = read_item(&w, err) == TENREC_OK ? best_of(list, &w, NULL, family) : NULL;
    if (best) {
        memset(ret, 0, sizeof *ret);
        memcpy(ret, best->ifa_addr,
               best->ifa_addr->sa_family == AF_INET6 ? sizeof ret->v6 : sizeof ret->v4);
    } else {
        tell_all(list, all);
        st = tenrec_fail(err, TENREC_ECONFIG,
                         "ifname: no interface that is up and has an %s address fits \"%.60s\"; "
                         "there are %s",
                         family == AF_INET    ? "IPv4"
                         : family == AF_INET6 ? "IPv6"
                                              : "IP",
                         wanted, all);
    }
    freeifaddrs(list);
    return st;
}
