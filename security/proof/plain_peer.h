/* SPDX-License-Identifier: Apache-2.0 */
/* plain_peer.h - whether a peer that proves nothing is let in. */
#ifndef TENREC_PROOF_PLAIN_PEER_H
#define TENREC_PROOF_PLAIN_PEER_H

#include "security/proof/security.h"

#include <sys/socket.h>

/* Checks the other end of a TCP connection, with the addresses of both ends. Does not wait.
 *
 * errors: EPERM with the reason, for the log */
tenrec_status plain_peer_check(enum security_plain plain, const struct sockaddr *theirs,
                               const struct sockaddr *ours, tenrec_error *err);

#endif
