/* SPDX-License-Identifier: Apache-2.0 */
/* rref_linked.c - the ids of workers in messages to and from linked workers. Either side has an id
 * of its own for the other, so such messages name their sender 0 and their receiver 1. */
#include "rpc/future/worker.h"
#include "rpc/rref/rref_context.h"

enum { ID_SENDER, ID_RECEIVER };

struct renaming {
    int64_t from[2], to[2];
};

static bool rename_one(const struct renaming *r, int64_t *id)
{
    for (int i = 0; i < 2; i++)
        if (*id == r->from[i]) {
            *id = r->to[i];
            return true;
        }
    return false;
}

static bool rename_all(const struct renaming *r, struct rref_fork *f)
{
    int64_t owner = f->owner, parent = f->parent;
    bool known = rename_one(r, &f->id.on) && rename_one(r, &f->fork.on) && rename_one(r, &owner) &&
                 rename_one(r, &parent);

    f->owner = (tenrec_peer)owner;
    f->parent = (tenrec_peer)parent;
    return known;
}

tenrec_status rref_linked_out(const struct tenrec_worker *w, tenrec_peer to, struct rref_fork *f,
                              tenrec_error *err)
{
    const struct renaming r = { { w->self.id, to }, { ID_SENDER, ID_RECEIVER } };

    if (!peers_is_linked(&w->peers, to) || rename_all(&r, f))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "'%s' is linked: it holds references to values of its own and of '%s', and "
                       "of no third worker",
                       peers_name(&w->peers, to), w->self.name);
}

tenrec_status rref_linked_in(const struct tenrec_worker *w, tenrec_peer from, struct rref_fork *f,
                             tenrec_error *err)
{
    const struct renaming r = { { ID_SENDER, ID_RECEIVER }, { from, w->self.id } };

    if (!peers_is_linked(&w->peers, from) || rename_all(&r, f))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "a reference of '%s', which is linked, names another worker than the two",
                       peers_name(&w->peers, from));
}
