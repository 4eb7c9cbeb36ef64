/* SPDX-License-Identifier: Apache-2.0 */
/* transport_uv.c - sockets and addresses of the uv transport. */
#include "transport/tcp/transport_uv.h"
#include "endpoint.h"
#include "transport/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define BACKLOG 1024
#define KEEPALIVES 4 /* that get no answer before a connection is given up */

static socklen_t length_of(const union transport_address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
}

/* Takes decimal digits up to `end`; false beyond 65535. */
static bool read_port(const char *text, const char *end, uint16_t *ret)
{
    uint32_t port = 0;

    if (text == end || end - text > 5)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (uint32_t)(*text - '0');
    }
    *ret = (uint16_t)port;
    return port <= UINT16_MAX;
}

tenrec_status transport_ports(const char *text, struct port_range *ret, tenrec_error *err)
{
    const char *end = text + strlen(text), *dash = strchr(text, '-');

    if (!read_port(text, dash ? dash : end, &ret->first) ||
        (dash && !read_port(dash + 1, end, &ret->last)) || (dash && ret->first == 0))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "port: expected a port such as \"29600\", a range such as "
                           "\"29600-29700\", or \"0\" for any, got \"%s\"",
                           text);
    if (!dash)
        ret->last = ret->first;
    if (ret->last < ret->first)
        return tenrec_fail(err, TENREC_ECONFIG, "port: the range \"%s\" ends before it begins",
                           text);
    return TENREC_OK;
}

static bool parse_v6(char *host, union transport_address *a)
{
    char *scope = strchr(host, '%');

    a->v6.sin6_family = AF_INET6;
    if (scope) {
        *scope++ = '\0';
        a->v6.sin6_scope_id = if_nametoindex(scope);
        if (a->v6.sin6_scope_id == 0)
            a->v6.sin6_scope_id = (uint32_t)strtoul(scope, NULL, 10);
    }
    return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1;
}

tenrec_status transport_parse(const char *text, size_t len, union transport_address *ret,
                              tenrec_error *err)
{
    union transport_address a;
    char copy[TRANSPORT_TEXT_MAX];
    char *host = copy, *port = NULL;
    uint16_t number = 0;
    bool v6;

    memset(&a, 0, sizeof a);
    if (len >= sizeof copy || memchr(text, '\0', len))
        goto bad;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (*copy == '[') {
        char *close = strchr(copy, ']');

        if (!close || (close[1] != ':' && close[1] != '\0'))
            goto bad;
        port = close[1] ? close + 2 : NULL;
        *close = '\0';
        host = copy + 1;
        v6 = true;
    } else {
        v6 = !strchr(copy, '.');
        port = v6 ? NULL : strchr(copy, ':');
        if (port)
            *port++ = '\0';
    }
    if (port && !read_port(port, port + strlen(port), &number))
        goto bad;
    if (v6) {
        if (!parse_v6(host, &a))
            goto bad;
    } else {
        a.v4.sin_family = AF_INET;
        if (inet_pton(AF_INET, host, &a.v4.sin_addr) != 1)
            goto bad;
    }
    transport_set_port(&a, number);
    *ret = a;
    return TENREC_OK;

bad:
    return tenrec_fail(err, TENREC_EINVAL,
                       "address \"%.*s\": expected a numeric address with a port, such as "
                       "127.0.0.1:1234 or [::1]:1234",
                       (int)(len < 80 ? len : 80), text);
}

/* The address family that the options ask for. */
static int tcp_family(const struct tp_options *o)
{
    if (strcmp(o->family, "ipv4") == 0)
        return AF_INET;
    return strcmp(o->family, "ipv6") == 0 ? AF_INET6 : AF_UNSPEC;
}

static bool is_wildcard(const union transport_address *a)
{
    if (a->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
    return a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

tenrec_status transport_local(const struct tp_options *o, union transport_address *ret,
                              tenrec_error *err)
{
    struct addrinfo hints = { .ai_family = tcp_family(o), .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    const char *name = o->listen;
    int e;

    if (*o->ifname)
        return interface_pick(o->ifname, tcp_family(o), ret, err);
    if (!*name)
        name = hints.ai_family == AF_INET6 ? "::1" : "127.0.0.1";
    e = getaddrinfo(name, NULL, &hints, &found);
    if (e)
        return tenrec_fail(err, TENREC_ECONFIG, "listen: \"%s\" (family %s): %s", name, o->family,
                           gai_strerror(e));
    memset(ret, 0, sizeof *ret);
    memcpy(ret, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (is_wildcard(ret))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "listen: \"%s\" is no address that others could connect to; name one "
                           "address of this host, or an interface in ifname",
                           name);
    return TENREC_OK;
}

static uint32_t scope_in(const char *address)
{
    const char *percent = strchr(address, '%');

    return percent ? if_nametoindex(percent + 1) : 0;
}

uint32_t transport_scope(const struct tp_options *o, const char *host_address)
{
    union transport_address at;
    uint32_t scope = 0;

    if (*o->ifname && interface_pick(o->ifname, tcp_family(o), &at, NULL) == TENREC_OK &&
        at.any.sa_family == AF_INET6)
        scope = at.v6.sin6_scope_id;
    if (!scope)
        scope = *o->ifname ? if_nametoindex(o->ifname) : scope_in(o->listen);
    return scope ? scope : scope_in(host_address);
}

/* Loopback has no congestion to control, and an algorithm that probes for some (bbr)
 * slows it down: "reno", which any user may choose, does not. */
static void leave_unpaced(int fd)
{
    static const char plain[] = "reno";

    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

/* Called before the connection is open: the kernel continues to pace a connection that bbr has
 * paced. A connection accepted from a loopback listener inherits the listener's algorithm. */
static void tcp_tune_loopback(int fd, const union transport_address *at)
{
    if (at->any.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr)
                                      : ntohl(at->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
        leave_unpaced(fd);
}

/* Afterwards: that an address of an interface is this host's own shows only then. */
static void tcp_tune_within_host(int fd, const union transport_address *peer)
{
    union transport_address here;
    socklen_t len = sizeof here;

    if (getsockname(fd, &here.any, &len) == 0 && transport_same_host(&here, peer))
        leave_unpaced(fd);
}

static int tcp_listen_at(const union transport_address *at, int *ret_fd)
{
    int one = 1, e;
    int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    /* So that a restarted worker gets its fixed port again at once. With any
     * port it is set after the choice, or a port that is taken might be chosen. */
    if (transport_port(at) != 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    tcp_tune_loopback(fd, at);
    if (bind(fd, &at->any, length_of(at)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 || listen(fd, BACKLOG) < 0) {
        e = errno;
        close(fd);
        return e;
    }
    *ret_fd = fd;
    return 0;
}

/* ", ..." if connections of this host get their ports from the range, too; else "". */
static void tell_overlap(const struct port_range *ports, char *ret, size_t cap)
{
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned first, last;

    *ret = '\0';
    if (!f)
        return;
    if (fscanf(f, "%u %u", &first, &last) == 2 && first <= ports->last && last >= ports->first)
        snprintf(ret, cap,
                 ", some perhaps by connections, whose own ports are %u to %u here "
                 "(net.ipv4.ip_local_port_range): choose others",
                 first, last);
    fclose(f);
}

static tenrec_status listen_refused(const struct tp_options *o, const struct port_range *ports,
                                    const union transport_address *at, int e, tenrec_error *err)
{
    char text[TRANSPORT_TEXT_MAX], overlap[160];

    transport_format(at, text);
    if (e != EADDRINUSE || ports->first == 0)
        return tenrec_fail_errno(err, TENREC_EOS, e, "cannot listen on %s (port \"%s\")", text,
                                 o->port);
    tell_overlap(ports, overlap, sizeof overlap);
    *strrchr(text, ':') = '\0';
    return tenrec_fail_errno(err, TENREC_EOS, e,
                             "cannot listen on %s: port \"%s\": all %u are taken%s", text, o->port,
                             (unsigned)ports->last - ports->first + 1, overlap);
}

tenrec_status uv_listen(const struct tp_options *o, int *ret_fd,
                        char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err)
{
    union transport_address at;
    struct port_range ports;
    socklen_t len = sizeof at;
    tenrec_status st;
    int e = 0;

    st = transport_ports(o->port, &ports, err);
    if (!st)
        st = transport_local(o, &at, err);
    if (st)
        return st;
    if (!transport_complete(&at, 0))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "listen: link-local address \"%s\" needs %%interface, as in "
                           "fe80::1%%eth0",
                           o->listen);
    for (uint32_t port = ports.first; port <= ports.last; port++) {
        transport_set_port(&at, (uint16_t)port);
        e = tcp_listen_at(&at, ret_fd);
        if (e != EADDRINUSE)
            break;
    }
    if (e)
        return listen_refused(o, &ports, &at, e, err);
    if (getsockname(*ret_fd, &at.any, &len) < 0) {
        e = errno;
        close(*ret_fd);
        return tenrec_fail_errno(err, TENREC_EOS, e, "cannot ask for the listening address");
    }
    if (at.any.sa_family == AF_INET6)
        at.v6.sin6_scope_id = 0; /* means nothing to others */
    transport_format(&at, ret_address);
    return TENREC_OK;
}

/* Converts to seconds, as TCP takes them. Returns false if keepalive is off. */
static bool keepalive_of(const struct tp_options *o, int *ret_idle, int *ret_gap)
{
    uint64_t seconds = o->keepalive_ms / 1000;

    if (o->keepalive_ms == TENREC_FOREVER)
        return false;
    if (seconds > 32767)
        seconds = 32767;
    *ret_idle = seconds ? (int)seconds : 1;
    *ret_gap = *ret_idle / KEEPALIVES > 0 ? *ret_idle / KEEPALIVES : 1;
    return true;
}

uint64_t transport_silence_ms(const struct tp_options *o)
{
    int idle, gap;

    return keepalive_of(o, &idle, &gap) ? ((uint64_t)idle + (uint64_t)gap * KEEPALIVES) * 1000 : 0;
}

/* The socket options of every data connection. */
static void tcp_tune(int fd, const struct tp_options *o)
{
    int one = 1, idle, gap, count = KEEPALIVES;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!keepalive_of(o, &idle, &gap))
        return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &gap, sizeof gap);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static struct conn *uv_accept(struct endpoint *ep, int fd, const union transport_address *from)
{
    tcp_tune(fd, ep->options);
    tcp_tune_within_host(fd, from);
    return conn_new(ep, &transport_uv, &stream_socket, fd, from);
}

static int uv_connect(struct endpoint *ep, const union transport_address *to, struct conn **ret)
{
    int e, fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    tcp_tune(fd, ep->options);
    tcp_tune_loopback(fd, to);
    if (connect(fd, &to->any, length_of(to)) < 0) {
        e = errno;
        if (e != EINPROGRESS && e != EINTR) {
            close(fd);
            return e;
        }
    }
    tcp_tune_within_host(fd, to);
    *ret = conn_new(ep, &transport_uv, &stream_socket, fd, to);
    return *ret ? 0 : ENOMEM;
}

static bool uv_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    (void)o;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "uv:*");
    return true;
}

const struct transport transport_uv = {
    .name = TRANSPORT_UV,
    .option = TRANSPORT_UV,
    .remote = true,
    .domain = uv_domain,
    .listen = uv_listen,
    .parse = transport_parse,
    .accept = uv_accept,
    .connect = uv_connect,
};
