/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/monitor/spread.h"

static tenrec_peer block_first(tenrec_peer id, unsigned level)
{
    return (tenrec_peer)((uint32_t)id >> (level * SPREAD_BITS) << (level * SPREAD_BITS));
}

/* The leader of the block that begins with `first`; NULL: all of its members are skipped. */
static const struct membership_view_entry *leader_of(const struct membership_view *v,
                                                     tenrec_peer first, unsigned level,
                                                     tenrec_peer me, const struct spread_skips *s)
{
    const tenrec_peer end = first + (1 << (level * SPREAD_BITS));

    for (size_t i = membership_view_index(v, first); i < v->n && v->entry[i].id < end; i++)
        if (v->entry[i].id == me || !s->skips(s->arg, &v->entry[i]))
            return &v->entry[i];
    return NULL;
}

bool spread_parent(const struct membership_view *v, tenrec_peer me, const struct spread_skips *s,
                   struct spread_child *ret)
{
    for (unsigned level = 1; level <= SPREAD_ALL; level++) {
        const struct membership_view_entry *e = leader_of(v, block_first(me, level), level, me, s);

        if (!e || e->id >= me)
            continue;
        *ret = (struct spread_child){ e->id, e->incarnation, level };
        return true;
    }
    return false;
}

size_t spread_children(const struct membership_view *v, tenrec_peer me, unsigned level,
                       const struct spread_skips *s, struct spread_child *ret)
{
    size_t n = 0;

    for (unsigned part = 0; part < level; part++) {
        const tenrec_peer first = block_first(me, part + 1), mine = block_first(me, part);
        size_t at = membership_view_index(v, first);

        /* From member to member, as most of a large block is empty. */
        while (at < v->n && block_first(v->entry[at].id, part + 1) == first) {
            const tenrec_peer block = block_first(v->entry[at].id, part);
            const struct membership_view_entry *e = leader_of(v, block, part, -1, s);

            if (block != mine && e && n < SPREAD_CHILDREN)
                ret[n++] = (struct spread_child){ e->id, e->incarnation, part };
            at = membership_view_index(v, block + (1 << (part * SPREAD_BITS)));
        }
    }
    return n;
}
