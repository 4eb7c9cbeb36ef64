/* SPDX-License-Identifier: Apache-2.0 */
/* store_tls.h - a client's TLS handshake, the first exchange of each connection in the modes tls
 * and mtls. */
#ifndef TENREC_STORE_STORE_TLS_H
#define TENREC_STORE_STORE_TLS_H

#include "group/store/store_conn.h"

struct security;

/* Shakes hands with the server and checks what it proves: all further bytes of `c` go through the
 * TLS session. There is no way back to plain bytes.
 *
 * errors: EPERM (a side is refused, or the server answers by something else than TLS), EPEER_LOST
 *         (closed, as by a server that knows no TLS; "no TLS" in the text), ETIMEDOUT, ENOMEM, EOS
 */
tenrec_status store_tls_shake(struct store_conn *c, const struct security *security,
                              uint64_t deadline_ns, tenrec_error *err);

#endif
