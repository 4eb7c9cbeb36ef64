/* SPDX-License-Identifier: Apache-2.0 */
/* proof.h - one side of the mutual proof of the group secret, without a socket: bytes in, bytes
 * out. It is the first exchange of a connection, before any frame of the protocol above.
 *
 *     dialler                                  listener
 *     HELLO: nonce, dialler, wanted, label ->
 *                                         <-   CHALLENGE: nonce, mac
 *     ANSWER: mac                          ->                    (its frames may follow at once)
 *                                         <-   ACCEPTED: listener, mac        (its frames follow)
 *
 * Each mac is HMAC-SHA256, by a key of HKDF(secret, purpose), over the side's role and all records
 * before it: both nonces, both parties and the label, and what binds it to the encrypted connection
 * below, if one is. So no mac serves another connection, side,
 * worker or purpose. The dialler sends no frame before it has checked the listener's mac, and the
 * listener reads none before it has checked the dialler's. A stranger learns no name of the
 * listener. REFUSED with a reason takes the place of any answer. The exchange proves; it does not
 * encrypt. docs/wire.md has the bytes. */
#ifndef TENREC_PROOF_PROOF_H
#define TENREC_PROOF_PROOF_H

#include "security/proof/security.h"

#include <stdbool.h>

struct proof;

#define PROOF_ADDRESS_MAX 255
#define STORE_PURPOSE "tcp-store" /* no plugin can have this name */

enum proof_side { PROOF_DIALLER, PROOF_LISTENER };

/* The process at one end. A store and a tool have rank -1. */
struct proof_party {
    int32_t rank;
    uint64_t incarnation;
    const char *name;    /* at most TENREC_NAME_MAX bytes; "" if it has none */
    const char *address; /* as published in the store; at most 255 bytes; "" if it has none */
};

#define PROOF_LABEL_MAX 64
#define PROOF_BINDING_BYTES 32
struct proof_terms {
    enum proof_side side;
    struct secret *secret; /* shared (counted) by the proof; NULL on a side that has none: it tells
                              the other side so, and is refused */
    const char *purpose;   /* STORE_PURPOSE, or a plugin's name: a mac of one serves no other */
    struct proof_party me;
    struct proof_party peer; /* the dialler's: the party that it wants; the listener's: ignored */
    const void *label;       /* the dialler's: bytes that belong to the connection */
    size_t label_len;
    /* PROOF_BINDING_BYTES that both ends of the encrypted connection below have, and no other
     * connection: each mac covers them. NULL: none is below. */
    const uint8_t *binding;
};

/* Copies the terms. errors: EINVAL, EOS, ENOMEM */
tenrec_status proof_open(const struct proof_terms *terms, struct proof **ret, tenrec_error *err);
void proof_close(struct proof *p); /* wipes; NULL is fine */

#define PROOF_RECORD_MAX 1024 /* bytes of the longest record */

/* Takes received bytes: at most as many as belong to the exchange, *ret_used of them.
 *
 * returns  OK also while it is not complete. EPERM: the other side is refused, or has refused us,
 *          with the reason for people; EPROTOCOL: the bytes are no proof. After an error send what
 *          proof_output gives, then close the connection. */
tenrec_status proof_take(struct proof *p, const void *in, size_t n, size_t *ret_used,
                         tenrec_error *err);

/* The listener's, for a peer that began no proof, or is not in our `mode`: ends the
 * exchange. The output tells a peer that knows proofs what it lacks. */
void proof_demand(struct proof *p, enum security_mode mode);
#define PROOF_DEMAND_LEN 9 /* bytes of that output */
/* Returns the mode that such an output of the other side demands, SECURITY_NONE for other bytes. */
enum security_mode proof_demanded(const void *bytes, size_t n);

/* The listener's, in place of its last record: the dialler has the secret, but not the name that it
 * gives. The output tells it so. */
void proof_withdraw(struct proof *p);

/* The bytes to send now, at most PROOF_RECORD_MAX; borrowed until the next proof_take. They count
 * as sent with this call. The dialler has some at once. */
const void *proof_output(struct proof *p, size_t *ret_len);

/* Returns true once the other side has proved the secret: frames may be sent behind the output. The
 * dialler may do so one round trip before the exchange is complete. */
bool proof_may_send(const struct proof *p);

/* Returns true once the exchange has ended well: the next received bytes are frames. */
bool proof_is_complete(const struct proof *p);

/* The other side as it has proved to be; valid when complete, until proof_close. Where the dialler
 * names the listener, the proof has compared the wanted name with the listener's, and its rank,
 * incarnation and address unless the dialler gave rank -1, incarnation 0 or "" for "any". */
const struct proof_party *proof_peer(const struct proof *p);
const void *proof_label(const struct proof *p, size_t *ret_len);

/* True if these first bytes of a connection (at least 4) begin a proof. */
bool proof_begins(const void *bytes, size_t n);

#endif
