/* SPDX-License-Identifier: Apache-2.0 */
/* plain_peer.h - whether a peer that proves nothing is let in. */
#ifndef TENREC_PROOF_PLAIN_PEER_H
#define TENREC_PROOF_PLAIN_PEER_H

#include <sys/socket.h>
#include <sys/types.h>
#include <tenrec/error.h>

#include "security/proof/security.h"

/* Checks the other end of a TCP connection, with the addresses of both ends. Does not wait.
 *
 * errors: EPERM with the reason, for the log */
tenrec_status plain_peer_check(enum security_plain plain, const struct sockaddr *theirs,
                               const struct sockaddr *ours, tenrec_error *err);

/* The user whose process holds the other end of a TCP connection within this host,
 * as the kernel tells by sock_diag. */

/* Finds the user of the open socket that is bound to `theirs` and connected to `ours`, the other
 * way round than our end. Does not wait: the kernel answers within the request.
 *
 * errors   ENOTFOUND (no process of this network namespace holds it open), EOS (the kernel does not
 *          tell) */
tenrec_status socket_owner_find(const struct sockaddr *theirs, const struct sockaddr *ours,
                                uid_t *ret, tenrec_error *err);

#endif
