/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h - from a host and a port to socket addresses, within a deadline. */
#ifndef TENREC_BASE_RESOLVE_H
#define TENREC_BASE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tenrec/error.h>

#define RESOLVE_MAX 8 /* addresses of one host, at most */

struct address {
    struct sockaddr_storage addr;
    socklen_t len;
};

/* All addresses of `host` ("127.0.0.1", "::1", "[::1]", "node3"), the best
 * first. A lookup that exceeds the deadline is abandoned; its thread exits when the
 * resolver returns.
 *
 * errors: ECONNECT (no such host, with the resolver's text), ETIMEDOUT, ENOMEM */
tenrec_status resolve_host(const char *host, uint16_t port, uint64_t deadline_ns,
                           struct address ret[RESOLVE_MAX], size_t *ret_n, tenrec_error *err);

/* Splits "host:port" or "[v6]:port". errors: EINVAL with the reason */
tenrec_status resolve_split(const char *text, char *ret_host, size_t room, uint16_t *ret_port,
                            tenrec_error *err);

/* Addresses that no other host can have. */

/* Returns true for "", for a Unix socket, and for a host that is loopback by its text, with or
 * without scheme and port: "uv://127.0.0.1:80", "[::1]:80", "::1", "localhost". */
bool this_host_has(const char *address);

#endif
