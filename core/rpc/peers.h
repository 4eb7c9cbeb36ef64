/* peers.h - names and ids of the workers of the group. */
#ifndef TENREC_RPC_PEERS_H
#define TENREC_RPC_PEERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <tenrec/rpc.h>

struct peer;

struct peers {
    struct peer *peer; /* by id */
    struct peer *by_name;
    size_t n;
    tenrec_peer me;
    _Atomic(struct peer *) last; /* whom peers_find_again has found */
};

/* Copies the names; name[i] has id i. errors: ENOMEM */
tenrec_status peers_fill(struct peers *p, const char *const *name, size_t n, tenrec_peer me,
                         tenrec_error *err);
void peers_finish(struct peers *p); /* safe on zeroed memory */

/* errors: EPEER_UNKNOWN with the nearest name */
tenrec_status peers_find(const struct peers *p, const char *name, tenrec_peer *ret,
                         tenrec_error *err);

/* The same, quicker for the name that was found last. */
tenrec_status peers_find_again(struct peers *p, const char *name, tenrec_peer *ret,
                               tenrec_error *err);

/* "" for an id that is none. Lives as long as p. */
const char *peers_name(const struct peers *p, tenrec_peer id);

/* Writes into *err on which worker it happened. */
void peers_blame(const struct peers *p, tenrec_peer id, tenrec_error *err);

#endif
