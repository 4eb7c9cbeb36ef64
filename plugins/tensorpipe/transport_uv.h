/* transport_uv.h - the transport that TensorPipe calls uv: TCP, IPv4 or IPv6.
 *
 * Addresses on the wire are numeric: 127.0.0.1:1234, [::1]:1234,
 * [fe80::1%eth0]:1234. The published form has the scheme uv:// in front. */
#ifndef TENSORPIPE_TRANSPORT_UV_H
#define TENSORPIPE_TRANSPORT_UV_H

#include "options.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define TRANSPORT_UV "uv"
#define TRANSPORT_UV_DOMAIN "uv:*"
#define TRANSPORT_UV_SCHEME "uv://"

/* An address with its port as text, and with the scheme. */
#define TRANSPORT_TEXT_MAX 96

union transport_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

struct port_range {
    uint16_t first, last; /* both 0: any free port */
};

/* errors: ECONFIG */
tenrec_status transport_ports(const char *text, struct port_range *ret, tenrec_error *err);

/* Reads an address without scheme. errors: EINVAL */
tenrec_status transport_parse(const char *text, size_t len, union transport_address *ret,
                              tenrec_error *err);
void transport_format(const union transport_address *a, char buf[TRANSPORT_TEXT_MAX]);
bool transport_same_host(const union transport_address *a, const union transport_address *b);
uint16_t transport_port(const union transport_address *a);
void transport_set_port(union transport_address *a, uint16_t port);

/* Which local address the options ask for; looks names and interfaces up.
 * errors: ECONFIG, EOS */
tenrec_status transport_local(const struct tp_options *o, union transport_address *ret,
                              tenrec_error *err);

/* A listening socket, non-blocking, not inherited; `ret_address` is where it
 * listens. errors: ECONFIG, EOS */
tenrec_status transport_listen(const struct tp_options *o, int *ret_fd,
                               union transport_address *ret_address, tenrec_error *err);

/* Begins to connect. 0 or an errno; `ret_pending`: writable when it is done. */
int transport_connect(const union transport_address *to, const struct tp_options *o, int *ret_fd,
                      bool *ret_pending);
/* How a connect that was pending ended: 0 or an errno. */
int transport_connected(int fd);

/* The socket options of every data connection. */
void transport_tune(int fd, const struct tp_options *o);

#endif
