/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - names and ids of the workers of the group.
 *
 * Every call resolves a name, so readers hold no lock. An entry is never moved or freed while the
 * worker lives: a peer that leaves only loses its id, and gets an id again when it rejoins under
 * the same name. */
#ifndef TENREC_FUTURE_PEERS_H
#define TENREC_FUTURE_PEERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <tenrec/rpc.h>

#define PEERS_NOBODY ((tenrec_peer)-2) /* the id of a name that has left */

struct peer;

struct peers {
    _Atomic(struct peer *) *by_id;   /* `room` of them */
    _Atomic(struct peer *) *by_name; /* lists by hash of the name */
    size_t room, n_lists;
    _Atomic size_t n;   /* peers with an id */
    _Atomic size_t top; /* all ids ever used are below */
    tenrec_peer me;
    bool lives;                  /* names are reused: a set of workers includes incarnations */
    _Atomic(struct peer *) last; /* the latest result of peers_find_again */
    _Atomic(const tenrec_error *) ended; /* why no name resolves any more */
    tenrec_error why;                    /* what `ended` points to */
};

/* Makes an empty table with room for the ids 0 to room - 1. errors: ENOMEM */
tenrec_status peers_init(struct peers *p, size_t room, tenrec_peer me, tenrec_error *err);
void peers_finish(struct peers *p); /* safe on zeroed memory */

/* The next three change the table: one thread at a time.
 *
 * incarnation  differs between two lives of one name
 * errors       ENOMEM */
tenrec_status peers_add(struct peers *p, tenrec_peer id, uint64_t incarnation, const char *name,
                        tenrec_error *err);
void peers_remove(struct peers *p, tenrec_peer id);
/* From now on peers_find fails with `why`. */
void peers_end(struct peers *p, const tenrec_error *why);

/* errors: EPEER_UNKNOWN with the nearest name */
tenrec_status peers_find(const struct peers *p, const char *name, tenrec_peer *ret,
                         tenrec_error *err);

/* The same, faster for the name that was found last. */
tenrec_status peers_find_again(struct peers *p, const char *name, tenrec_peer *ret,
                               tenrec_error *err);

/* Returns true if a worker has that id now. */
bool peers_has(const struct peers *p, tenrec_peer id);

/* The name of the peer that has that id, or had it last; "" if the id was never used. Borrowed
 * until peers_finish. */
const char *peers_name(const struct peers *p, tenrec_peer id);
uint64_t peers_incarnation(const struct peers *p, tenrec_peer id);

/* Writes the id and the name of the peer into *err. */
void peers_blame(const struct peers *p, tenrec_peer id, tenrec_error *err);

#endif
