/* SPDX-License-Identifier: Apache-2.0 */
/* prover.h - the proof of the group secret as the first exchange of a connection.
 *
 * While it is under way the connection's events belong to the prover; then its owner gets them
 * back. The rooms above get a connection whose first byte is that of the hello, as in mode none.
 * The owner keeps the connection all the time, with its deadline and its place among the
 * handshakes, and drops it when it likes. Loop thread. */
#ifndef TENSORPIPE_PROVER_H
#define TENSORPIPE_PROVER_H

#include "endpoint.h"
#include "transport/conn.h"

/* Ends the connection: the other side is refused, has refused us, or is gone (ECONNECT). The
 * connection's events are the owner's again. */
typedef void prover_refused_fn(struct conn *c, const tenrec_error *why);

/* For a connection that has just been accepted, before it hears of anything. Its owner hears of
 * EPOLLIN once the peer has proved to belong to the group, or may do without. */
void prover_listen(struct conn *c, prover_refused_fn *refused);

/* For an open connection to `member`. Its owner gets EPOLLOUT once the listener has accepted.
 *
 * label   the registration id of a further connection, else 0
 * errors  those of the service's dial; ECONNECT */
tenrec_status prover_dial(struct conn *c, tenrec_peer member, uint64_t label,
                          prover_refused_fn *refused, tenrec_error *err);

/* Returns true if the peer of this connection may do without a proof; and if some peer may. */
bool prover_admits(const struct conn *c);
bool prover_admits_any(const struct endpoint *ep);

/* Returns true if the connections of a peer that has proved itself, or that has not, may use the
 * transport: rings are for proved peers only. */
bool prover_suits(const struct endpoint *ep, const struct transport *t, bool proved);

/* For a connection in mode none whose buffer begins with a proof: its peer sends one although none
 * is required, or refuses us because we sent none. Answers the former and writes the reason.
 *
 * dialled   the member; TENREC_ANONYMOUS for a connection that came in */
void prover_explain(struct conn *c, tenrec_peer dialled, tenrec_error *err);

/* Returns true if the bytes in the buffer of `c` begin with a proof. */
static inline bool prover_begins(const struct conn *c)
{
    return conn_buffered(c) >= TENREC_PROOF_MAGIC_LEN && tenrec_proof_begins(c->buf + c->pos);
}

#endif
