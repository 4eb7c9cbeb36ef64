/* SPDX-License-Identifier: Apache-2.0 */
/* transport_tls.h - TCP that carries TLS 1.3 from its first byte: there is no plain beginning that
 * a process on the way could keep plain. The core has the keys (tenrec/tls.h). */
#ifndef TENSORPIPE_TRANSPORT_TLS_H
#define TENSORPIPE_TRANSPORT_TLS_H

#include "transport/transport.h"

extern const struct transport transport_tls;

struct conn;

/* Lets a TCP connection carry TLS. Returns false without memory. */
bool stream_tls_begin(struct conn *c, bool dials);

#endif
