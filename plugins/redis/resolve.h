/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h - resolves a host name to addresses within a deadline. */
#ifndef REDIS_RESOLVE_H
#define REDIS_RESOLVE_H

#include <netdb.h>
#include <stdint.h>
#include <tenrec/error.h>

/* At least one address; free them with freeaddrinfo.
 *
 * errors: ECONNECT (no such host), ETIMEDOUT, ENOMEM */
tenrec_status resolve(const char *host, uint16_t port, uint64_t deadline_ns, struct addrinfo **ret,
                      tenrec_error *err);

#endif
