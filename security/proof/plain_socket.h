/* SPDX-License-Identifier: Apache-2.0 */
/* plain_socket.h - whether the peer of a connected socket may do without a proof. */
#ifndef TENREC_PROOF_PLAIN_SOCKET_H
#define TENREC_PROOF_PLAIN_SOCKET_H

#include "security/proof/security.h"

/* Asks the kernel whose process the peer is. Does not wait. errors: EPERM */
tenrec_status plain_socket_check(enum security_plain plain, int fd, tenrec_error *err);

#endif
