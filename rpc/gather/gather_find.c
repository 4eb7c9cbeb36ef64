/* SPDX-License-Identifier: Apache-2.0 */
/* gather_find.c - finds the set of a gather. To list a thousand members for each message would take
 * most of the time of a barrier, so a set is kept until a member comes or goes. */
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"

/* The whole group as we know it, if no member came or went since. */
static struct participants *find_known(struct tenrec_worker *w)
{
    const uint64_t changes = atomic_load(&w->peers.changes);
    struct gathers *gs = gathers_of(w);
    struct participants *found = NULL;

    pthread_mutex_lock(&gs->lock);
    if (gs->whole && gs->whole->changes == changes)
        found = participants_share(gs->whole);
    pthread_mutex_unlock(&gs->lock);
    return found;
}

tenrec_status gather_find_set(struct tenrec_worker *w, const char *const *names, size_t n,
                              struct participants **ret, tenrec_error *err)
{
    struct gathers *gs = gathers_of(w);
    tenrec_status st;

    if (!names && (*ret = find_known(w)))
        return TENREC_OK;
    st = participants_of_names(&w->peers, names, n, ret, err);
    if (st != TENREC_OK || names)
        return st;
    pthread_mutex_lock(&gs->lock);
    participants_drop(gs->whole);
    gs->whole = participants_share(*ret);
    pthread_mutex_unlock(&gs->lock);
    return TENREC_OK;
}

/* A set of a gather that is open, or was. A member of an open gather may have left. */
static struct participants *find_hash(struct tenrec_worker *w, const struct set_hash *hash)
{
    struct gathers *gs = gathers_of(w);
    struct participants *found = NULL;
    struct gather_set *set;
    struct gather *g;

    pthread_mutex_lock(&gs->lock);
    for (g = gs->open; g && !set_hash_equals(&g->who->hash, hash); g = g->next)
        ;
    if (g)
        found = participants_share(g->who);
    else if ((set = gather_set_find(gs->sets, hash)))
        found = participants_share(set->who);
    pthread_mutex_unlock(&gs->lock);
    return found;
}

/* The whole group, if it has that hash. */
static tenrec_status find_whole(struct tenrec_worker *w, const struct set_hash *hash,
                                struct participants **ret, tenrec_error *err)
{
    tenrec_status st = gather_find_set(w, NULL, 0, ret, err);

    if (st != TENREC_OK || set_hash_equals(&(*ret)->hash, hash))
        return st;
    participants_drop(*ret);
    *ret = NULL;
    return tenrec_fail(err, TENREC_EGROUP,
                       "the gather is of all members, and '%s' knows others than the sender: a "
                       "member has joined or left meanwhile",
                       w->self.name);
}

tenrec_status gather_find_text(struct tenrec_worker *w, const char *text, struct participants **ret,
                               tenrec_error *err)
{
    struct set_hash hash;

    if (!participants_hash(text, &hash)) {
        *ret = NULL;
        return w->peers.lives || text[1]
                   ? tenrec_fail(err, TENREC_EPROTOCOL, "malformed gather: no hash of a set")
                   : gather_find_set(w, NULL, 0, ret, err);
    }
    if ((*ret = find_hash(w, &hash)))
        return TENREC_OK;
    return participants_are_hashed(text) ? find_whole(w, &hash, ret, err)
                                         : participants_of_lines(&w->peers, text, ret, err);
}
