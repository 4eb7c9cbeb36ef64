/* SPDX-License-Identifier: Apache-2.0 */
/* ring_session.c - TLS over the socket of a connection, until its peer has proved itself (mode
 * mtls).
 *
 * Only certificates prove in that mode, and a handshake of TLS is where they are shown. Behind the
 * proof the socket is plain, for descriptors and bells, and the rings' bytes stay on this host.
 *
 * A session reads all bytes of its socket, and so could swallow the first plain bytes. There are
 * none: the dialler sends nothing between its proof and the memory, for which it waits until the
 * listener has accepted, and the listener nothing between that and its answer to the memory. A peer
 * that breaks this order is refused (prover.c), or loses what makes no whole record. */
#include "endpoint.h"
#include "transport/ring/ring_medium.h"

bool ring_session_open(struct conn *c, bool dials)
{
    struct endpoint *ep = c->ep;
    tenrec_error why;

    if (!ep->proves || ep->proof->mode(ep->self) != TENREC_SECURITY_MTLS)
        return true;
    if (ep->tls->open(ep->self, c->source.fd, dials, &c->tls, &why) == TENREC_OK)
        return true;
    endpoint_log(ep, TENREC_LOG_WARN, "no TLS for a connection: %s", why.text);
    return false;
}

tenrec_status ring_session_shake(struct conn *c, tenrec_error *err)
{
    return c->tls ? c->ep->tls->shake(c->tls, err) : TENREC_OK;
}

void ring_session_close(struct conn *c)
{
    if (c->tls)
        c->ep->tls->close(c->tls);
    c->tls = NULL;
}
