/* SPDX-License-Identifier: Apache-2.0 */
/* socket_owner.h - the user whose process holds the other end of a TCP connection within this host,
 * as the kernel tells by sock_diag. */
#ifndef TENREC_PROOF_SOCKET_OWNER_H
#define TENREC_PROOF_SOCKET_OWNER_H

#include <sys/socket.h>
#include <sys/types.h>
#include <tenrec/error.h>

/* Finds the user of the open socket that is bound to `theirs` and connected to `ours`, the other
 * way round than our end. Does not wait: the kernel answers within the request.
 *
 * errors   ENOTFOUND (no process of this network namespace holds it open), EOS (the kernel does not
 *          tell) */
tenrec_status socket_owner_find(const struct sockaddr *theirs, const struct sockaddr *ours,
                                uid_t *ret, tenrec_error *err);

#endif
