/* SPDX-License-Identifier: Apache-2.0 */
/* prove.h - the proof of the group secret at the begin of a connection, and to which connection a
 * message belongs. All of it is the driver's.
 *
 *     client                                      callee
 *     PROOF: its cookie, a record            ->
 *                                            <-   PROOF: its cookie, a record
 *     PROOF: a record                        ->
 *                                            <-   PROOF: a record
 *     HELLO, messages                        ->
 *                                            <-   HELLO, answers
 *
 * The client's cookie is the label of the proof, which covers it. Each later head has the
 * receiver's cookie, so the message that tells the callee's cookie has the client's. */
#ifndef UCX_PROVE_H
#define UCX_PROVE_H

#include "incoming.h"

struct conn_proof {
    struct tenrec_proof *open; /* under way; NULL: none */
    bool must_prove;           /* before anything else of the connection is read */
    bool proved;               /* to be these: */
    tenrec_peer id;
    uint64_t incarnation;
    bool guarded; /* the other side knows, or learns, `cookie`, and each of its heads has it */
    bool met;     /* `peer_cookie` has arrived */
    unsigned char cookie[HEAD_COOKIE_LEN], peer_cookie[HEAD_COOKIE_LEN];
    tenrec_error refusal; /* code: not OK while the other side may read why */
};

/* errors   ECONFIG: a mode in which nothing can be proved here */
tenrec_status prove_open(struct ucx *u, tenrec_error *err);

/* Sends the client's first record. Returns false if there must be no proof. */
bool prove_dial(struct conn *c);

/* Returns true if the head, whose reading ended with `st`, is of this connection; else the
 * message is dropped, or the connection broken. */
bool prove_owns(struct conn *c, tenrec_status st, const struct head *h, const tenrec_error *err);

/* Handles a message of the proof, or before its end. Returns false if it is neither. */
bool prove_take(struct conn *c, const struct head *h, const struct bytes *b);

/* Returns true if a hello may claim this. */
bool prove_agrees(const struct conn *c, tenrec_peer id, uint64_t incarnation);

void prove_close(struct conn *c);

#endif
