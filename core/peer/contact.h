/* SPDX-License-Identifier: Apache-2.0 */
/* contact.h - whether the members of a static group can be reached at all.
 *
 * A broken connection says little: the peer may connect again. A peer at whose address
 * no process listens has gone for good, for its group has no other life. A wait for
 * a member that does not come tries to reach it: a refused connection is the answer, and
 * a connection that stands tells later when the peer dies. */
#ifndef TENREC_PEER_CONTACT_H
#define TENREC_PEER_CONTACT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>

struct tenrec_worker;

/* No process listens at the address of `peer`: told once with `why`, and with NULL for each
 * later try. */
typedef void contact_refused_fn(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

struct contacts {
    _Atomic uint8_t *of; /* enum contact by id; owns; NULL: a dynamic group has heartbeats */
    size_t n;
    contact_refused_fn *refused; /* set before the worker starts */
};

/* For a group of `n`; forgets the former one. errors: ENOMEM */
tenrec_status contacts_reset(struct contacts *c, size_t n, tenrec_error *err);
void contacts_finish(struct contacts *c); /* safe on zeroed memory */

/* Sends `peer` a message without an answer, unless a connection to it stands or is on its
 * way. When its address refuses, contacts.refused is called, and contact_refused is true from
 * then on. Never waits. Inside the worker, no lock held. */
void contact_try(struct tenrec_worker *w, tenrec_peer peer);

/* A message to `peer` was not sent, and `why`. Returns true if its address refuses; then the
 * peer counts as contact_try says. */
bool contact_failed(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

/* The connection to `peer`, or from it, broke: the next contact_try tries again. */
void contact_lost(struct tenrec_worker *w, tenrec_peer peer);
/* Returns true from then on until the next try. */
bool contact_is_lost(const struct tenrec_worker *w, tenrec_peer peer);

/* Returns true if no process listens at the peer's address. */
bool contact_refused(const struct tenrec_worker *w, tenrec_peer peer);

#endif
