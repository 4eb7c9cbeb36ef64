/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - the workers of the group: their names and ids, and which of them have died for good.
 *
 * Every call resolves a name, so readers hold no lock. An entry is never moved or freed while the
 * worker lives: a peer that leaves only loses its id, and gets an id again when it rejoins under
 * the same name. */
#ifndef TENREC_FUTURE_PEERS_H
#define TENREC_FUTURE_PEERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenrec/agent.h>
#include <tenrec/rpc.h>

#define PEERS_NOBODY ((tenrec_peer)-2) /* the id of a name that has left */

struct peer;

struct peers {
    _Atomic(struct peer *) *by_id;   /* `room` of them */
    _Atomic(struct peer *) *by_name; /* lists by hash of the name */
    char *block;                     /* owns; the entries of peers_fill, of so many bytes */
    size_t block_bytes;
    size_t room, n_lists;
    size_t members;     /* ids from here on are of linked workers, which are not of the group */
    _Atomic size_t n;   /* members with an id */
    _Atomic size_t top; /* all ids that members ever had are below */
    _Atomic uint64_t changes; /* of the members */
    tenrec_peer me;
    bool lives;                  /* names are reused: a set of workers includes incarnations */
    _Atomic(struct peer *) last; /* the latest result of peers_find_again */
    _Atomic(const tenrec_error *) ended; /* why no name resolves any more */
    tenrec_error why;                    /* what `ended` points to */
};

/* Makes an empty table with room for the ids 0 to room - 1, all of members. errors: ENOMEM */
tenrec_status peers_init(struct peers *p, size_t room, tenrec_peer me, tenrec_error *err);
void peers_finish(struct peers *p); /* safe on zeroed memory */

/* The next four change the table: one thread at a time.
 *
 * incarnation  differs between two lives of one name
 * errors       ENOMEM */
tenrec_status peers_add(struct peers *p, tenrec_peer id, uint64_t incarnation, const char *name,
                        tenrec_error *err);
/* The same for `n` members, whose names differ, in an empty table. */
tenrec_status peers_fill(struct peers *p, const struct tenrec_member *member, uint32_t n,
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

/* Returns true if the id is of a linked worker. */
static inline bool peers_is_linked(const struct peers *p, tenrec_peer id)
{
    return id >= 0 && (size_t)id >= p->members;
}

/* The name of the peer that has that id, or had it last; "" if the id was never used. Borrowed
 * until peers_finish. */
const char *peers_name(const struct peers *p, tenrec_peer id);
uint64_t peers_incarnation(const struct peers *p, tenrec_peer id);

/* Writes the id and the name of the peer into *err. */
void peers_blame(const struct peers *p, tenrec_peer id, tenrec_error *err);

/* ---- contact.c: finds members of a static group that have died for good.
 *
 * A broken connection proves little: the peer may connect again. A refused connection proves that
 * no process listens at the peer's address, and a static group has no other life. A thread that
 * waits for a member connects to it, so that the refusal, or a later loss, ends the wait. --------
 */

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

/* Returns true from contact_try until contact_lost: the end of its connection is awaited. */
bool contact_watches(const struct tenrec_worker *w, tenrec_peer peer);

/* Forgets what was recorded: the id has a new holder. */
void contact_forget(struct tenrec_worker *w, tenrec_peer peer);

/* Returns true if no process listens at the peer's address. */
bool contact_refused(const struct tenrec_worker *w, tenrec_peer peer);

#endif
