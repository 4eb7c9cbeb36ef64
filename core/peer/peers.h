/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - names and ids of the workers of the group.
 *
 * Every call looks its worker up, so that nobody locks to read. What is found
 * is never moved or freed while the worker lives: who leaves only loses its id,
 * and gets it, or another, when it comes back under the same name. */
#ifndef TENREC_PEER_PEERS_H
#define TENREC_PEER_PEERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <tenrec/rpc.h>

#define PEERS_NOBODY ((tenrec_peer)-2) /* the id of a name that has left */

struct peer;

struct peers {
    _Atomic(struct peer *) *by_id;   /* `room` of them */
    _Atomic(struct peer *) *by_name; /* lists by hash of the name */
    size_t room, n_lists;
    _Atomic size_t n;   /* that are there */
    _Atomic size_t top; /* all ids ever used are below */
    tenrec_peer me;
    bool lives;                  /* names come again: a set of workers is one of their lives */
    _Atomic(struct peer *) last; /* whom peers_find_again has found */
    _Atomic(const tenrec_error *) ended; /* why no name means anything any more */
    tenrec_error why;                    /* what `ended` points to */
};

/* Room for the ids 0 to room - 1; nobody is there. errors: ENOMEM */
tenrec_status peers_init(struct peers *p, size_t room, tenrec_peer me, tenrec_error *err);
void peers_finish(struct peers *p); /* safe on zeroed memory */

/* These change it: one thread at a time.
 *
 * incarnation  differs between two lives of one name
 * errors       ENOMEM */
tenrec_status peers_add(struct peers *p, tenrec_peer id, uint64_t incarnation, const char *name,
                        tenrec_error *err);
void peers_remove(struct peers *p, tenrec_peer id);
/* From now on looking a name up fails with `why`. */
void peers_end(struct peers *p, const tenrec_error *why);

/* errors: EPEER_UNKNOWN with the nearest name */
tenrec_status peers_find(const struct peers *p, const char *name, tenrec_peer *ret,
                         tenrec_error *err);

/* The same, quicker for the name that was found last. */
tenrec_status peers_find_again(struct peers *p, const char *name, tenrec_peer *ret,
                               tenrec_error *err);

/* Is a worker of that id there? */
bool peers_has(const struct peers *p, tenrec_peer id);

/* Of who has that id, or had it last; "" when nobody ever did. Lives as long as p. */
const char *peers_name(const struct peers *p, tenrec_peer id);
uint64_t peers_incarnation(const struct peers *p, tenrec_peer id);

/* Writes into *err on which worker it happened. */
void peers_blame(const struct peers *p, tenrec_peer id, tenrec_error *err);

#endif
