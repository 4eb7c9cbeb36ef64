/* SPDX-License-Identifier: Apache-2.0 */
/* contact.h - finds members of a static group that have died for good.
 *
 * A broken connection proves little: the peer may connect again. A refused connection proves that
 * no process listens at the peer's address, and a static group has no other life. A thread that
 * waits for a member connects to it, so that the refusal, or a later loss, ends the wait. */
#ifndef TENREC_FUTURE_CONTACT_H
#define TENREC_FUTURE_CONTACT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>

struct tenrec_worker;

/* No process listens at the address of `peer`: called once with `why`, and with NULL for each later
 * try. */
typedef void contact_refused_fn(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

struct contacts {
    _Atomic uint8_t *of; /* enum contact by id; owns; NULL in a dynamic group */
    size_t n;
    contact_refused_fn *refused; /* set before the worker starts */
};

/* Prepares for a group of `n` and forgets the former group. errors: ENOMEM */
tenrec_status contacts_reset(struct contacts *c, size_t n, tenrec_error *err);
void contacts_finish(struct contacts *c); /* safe on zeroed memory */

/* Sends `peer` a message without an answer, unless a connection to it is open or being made. When
 * its address refuses, contacts.refused is called, and contact_refused is true from then on. Never
 * waits. Inside the worker, no lock held. */
void contact_try(struct tenrec_worker *w, tenrec_peer peer);

/* Records that a message to `peer` was not sent, and `why`. Returns true if the peer's address
 * refuses; the peer is then handled as in contact_try. */
bool contact_failed(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

/* Records that the connection to or from `peer` broke: the next contact_try connects again. */
void contact_lost(struct tenrec_worker *w, tenrec_peer peer);
/* Returns true from contact_lost until the next contact_try. */
bool contact_is_lost(const struct tenrec_worker *w, tenrec_peer peer);

/* Returns true if no process listens at the peer's address. */
bool contact_refused(const struct tenrec_worker *w, tenrec_peer peer);

#endif
