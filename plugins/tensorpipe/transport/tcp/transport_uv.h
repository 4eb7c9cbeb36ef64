/* SPDX-License-Identifier: Apache-2.0 */
/* transport_uv.h - the transport that TensorPipe calls uv: TCP, IPv4 or IPv6.
 *
 * Addresses on the wire are numeric: 127.0.0.1:1234, [::1]:1234. The published form has the scheme
 * uv:// in front, and never an interface, as in [fe80::1%eth0]:1234: its reader has others. */
#ifndef TENSORPIPE_TRANSPORT_UV_H
#define TENSORPIPE_TRANSPORT_UV_H

#include "transport/transport.h"

#define TRANSPORT_UV "uv"
#define TRANSPORT_UV_SCHEME "uv://"

extern const struct transport transport_uv;
/* The bytes of its connections. */
extern const struct stream stream_socket;
/* Operations of both that TLS over TCP has, too. */
bool socket_want_room(struct conn *c, bool masked);
int socket_connected(struct conn *c);
void socket_cut(struct conn *c);
tenrec_status uv_listen(const struct tp_options *o, int *ret_fd,
                        char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err);

struct port_range {
    uint16_t first, last; /* both 0: any free port */
};

/* errors: ECONFIG */
tenrec_status transport_ports(const char *text, struct port_range *ret, tenrec_error *err);

/* Reads an address without scheme. errors: EINVAL */
tenrec_status transport_parse(const char *text, size_t len, union transport_address *ret,
                              tenrec_error *err);

/* Finds the local address that the options name, by a host, an interface or an address.
 * errors: ECONFIG, EOS */
tenrec_status transport_local(const struct tp_options *o, union transport_address *ret,
                              tenrec_error *err);

/* The interface through which link-local addresses of others are reached: that of the own address,
 * else the one that `ifname` names, else that of `host_address`. 0: unknown. */
uint32_t transport_scope(const struct tp_options *o, const char *host_address);

/* Keepalive limit: a host that is silent for so long is lost. 0 disables it. */
uint64_t transport_silence_ms(const struct tp_options *o);

/* interface.c: which of this machine's network interfaces an agent listens on.
 *
 * The option names one or several, separated by commas, the first that fits is
 * taken:
 *
 *     eth0             this one
 *     eth*             any whose name begins so
 *     10.1.0.0/16      any with an address in this subnet, and that address
 *     ^docker0,virbr*  any but these, and not loopback
 *
 * Of several addresses IPv4 goes before IPv6, and what is good on one link only
 * (fe80::...) comes last. */

/* Checks the syntax of the text. errors: ECONFIG */
tenrec_status interface_check(const char *wanted, tenrec_error *err);

/* The address to listen on. family: AF_UNSPEC for any.
 * errors: ECONFIG lists the interfaces; EOS */
tenrec_status interface_pick(const char *wanted, int family, union transport_address *ret,
                             tenrec_error *err);

#endif
