/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_greeting.c - the steps common to both sides of a handshake. */
#include "pipe/life/pipe_life.h"
#include "proof/prover.h"

#include <errno.h>

void pipe_greeting_ended(struct pipe *p, const struct conn *c, int e)
{
    if (pipe_state(p) == PIPE_ESTABLISHED) {
        pipe_give_deferred_up(p, "the peer closed one of them");
        return;
    }
    if (!p->outgoing || conn_buffered(c) || !pipe_redial(p))
        pipe_failf(p, TENREC_ECONNECT, e ? e : ECONNRESET,
                   "closed the connection during the handshake");
}

bool pipe_read_greeting(struct pipe *p, struct conn *c, const char *what, const unsigned char **ret,
                        size_t *ret_len)
{
    const uint64_t max = p->ep->options->max_object;
    enum frame frame;
    bool is_short;
    int e;

    while ((frame = conn_frame(c, max, ret, ret_len)) == FRAME_PARTIAL) {
        tenrec_error err;
        ssize_t n;

        if (pipe_charge_reading(p, &err)) {
            pipe_failf(p, err.code, 0, "%s", err.text);
            return false;
        }
        n = conn_read(c, NULL, 0, false, &is_short, &e);
        if (n < 0)
            pipe_greeting_ended(p, c, e);
        if (n <= 0)
            return false;
    }
    if (frame == FRAME_TOO_BIG && p->outgoing && prover_begins(c)) {
        tenrec_error err;

        prover_explain(c, p->to->id, &err);
        pipe_failf(p, err.code, 0, "%s", err.text);
        return false;
    }
    if (frame == FRAME_NO_MEMORY)
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for the %s", what);
    else if (frame == FRAME_TOO_BIG)
        pipe_failf(p, TENREC_EPROTOCOL, 0, "sent %zu bytes as %s; max_object is %llu", *ret_len,
                   what, (unsigned long long)max);
    return frame == FRAME_WHOLE;
}
