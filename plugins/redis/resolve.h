/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h - resolves a host name to addresses within a deadline. */
#ifndef REDIS_RESOLVE_H
#define REDIS_RESOLVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tenrec/error.h>

#define RESOLVE_MAX 8 /* addresses per host */

struct address {
    struct sockaddr_storage addr;
    socklen_t len;
};

/* errors: ECONNECT (no such host), ETIMEDOUT, ENOMEM */
tenrec_status resolve(const char *host, uint16_t port, uint64_t deadline_ns,
                      struct address ret[RESOLVE_MAX], size_t *ret_n, tenrec_error *err);

#endif
