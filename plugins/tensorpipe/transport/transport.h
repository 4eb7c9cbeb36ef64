/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - the ways to connect to a peer, and what each of them does.
 *
 * In a Brochure a transport is its name and a domain: both ends must name the
 * same one with the same domain to use it. */
#ifndef TENSORPIPE_TRANSPORT_H
#define TENSORPIPE_TRANSPORT_H

#include "options.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TRANSPORTS_MAX 3
#define TRANSPORT_TEXT_MAX 128   /* an address as text, without scheme */
#define TRANSPORT_DOMAIN_MAX 160 /* a domain */

struct endpoint;
struct conn;

union transport_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local; /* sun_path: 0 and a name, or a path; it ends with 0 */
    struct sockaddr_storage storage;
};

struct transport {
    const char *name;   /* in Brochures, and before the :// of addresses */
    const char *option; /* its name in the option `transports`, which several may share */
    bool fallback;      /* published only if no other transport is: fewer peers reach it */
    bool encrypted;     /* for the modes tls and mtls, and those alone */
    bool remote;        /* reaches other hosts, and so has hosts and ports as addresses */

    /* Returns true if this machine permits the transport, else writes the reason. NULL: always. */
    bool (*viable)(char why[], size_t cap);
    /* Peers with equal domains can reach each other. Returns false, and an empty text, if the
     * machine has no name for its domain, or the options do not ask for the transport. */
    bool (*domain)(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX]);

    /* A listening socket, non-blocking, not inherited, and its address as text. */
    tenrec_status (*listen)(const struct tp_options *o, int *ret_fd,
                            char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err);
    /* errors: EINVAL */
    tenrec_status (*parse)(const char *text, size_t len, union transport_address *ret,
                           tenrec_error *err);
    /* Makes the connection of an accepted socket, which it takes. Returns NULL if out of memory or
     * if the peer is refused; the socket is closed then. */
    struct conn *(*accept)(struct endpoint *ep, int fd, const union transport_address *from);
    /* Starts to connect; EPOLLOUT reports the end (stream->connected). Returns 0 or an errno. */
    int (*connect)(struct endpoint *ep, const union transport_address *to, struct conn **ret);
};

/* All transports of this build, the last NULL; of those with the same option the better first. */
extern const struct transport *const transports[];

/* Returns the transport of that name in `all`, which ends with NULL; NULL if it has none. */
const struct transport *transport_named(const struct transport *const *all, const char *name);
/* Returns the transport whose scheme `address` begins with, and the rest of the address; or NULL.
 */
const struct transport *transport_of(const struct transport *const *all, const char *address,
                                     const char **ret_rest);

void transport_format(const union transport_address *a, char buf[TRANSPORT_TEXT_MAX]);
/* `a` is an IP address. */
uint16_t transport_port(const union transport_address *a);
void transport_set_port(union transport_address *a, uint16_t port);
/* A link-local address means nothing without an interface of the host that uses it. Adds the
 * interface `scope` to a link-local address without one; returns false if `scope` is 0, which makes
 * the address unreachable. */
bool transport_complete(union transport_address *a, uint32_t scope);
bool transport_same_host(const union transport_address *a, const union transport_address *b);

#endif
