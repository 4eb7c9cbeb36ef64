/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/chain_members.h"

#include "core/base/memory.h"

#include <stdlib.h>

void chain_members_init(struct chain_members *m, bool dynamic)
{
    *m = (struct chain_members){ .dynamic = dynamic };
    pthread_mutex_init(&m->lock, NULL);
}

void chain_members_finish(struct chain_members *m)
{
    pthread_mutex_destroy(&m->lock);
    free(m->v);
}

/* Lock held. */
static bool members_reserve(struct chain_members *m, size_t n)
{
    struct chain_member *bigger;
    size_t room = n < 2 * m->room ? 2 * m->room : n;

    if (n <= m->room)
        return true;
    bigger = memory_resize(m->v, room, sizeof *bigger);
    if (!bigger)
        return false;
    memset(bigger + m->room, 0, (room - m->room) * sizeof *bigger);
    m->v = bigger;
    m->room = room;
    return true;
}

tenrec_status chain_members_add(struct chain_members *m, const struct tenrec_member *member,
                                tenrec_error *err)
{
    bool added;

    if (member->id < 0)
        return tenrec_fail(err, TENREC_EINVAL, "member id %d: expected 0 or more", (int)member->id);
    pthread_mutex_lock(&m->lock);
    added = members_reserve(m, (size_t)member->id + 1);
    if (added)
        m->v[member->id] =
            (struct chain_member){ .here = true,
                                   .rank = TENREC_HAS(member, linked) ? 0 : member->id,
                                   .incarnation = member->incarnation,
                                   .name = member->name,
                                   .address = member->address };
    pthread_mutex_unlock(&m->lock);
    return added ? TENREC_OK : memory_fail(err);
}

tenrec_status chain_members_add_all(struct chain_members *m, const struct tenrec_member *member,
                                    uint32_t n, tenrec_error *err)
{
    const char *at = (const char *)member;
    tenrec_status st;

    pthread_mutex_lock(&m->lock);
    st = members_reserve(m, n) ? TENREC_OK : memory_fail(err); /* no more than they need, mostly */
    pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++, at += member->size)
        st = chain_members_add(m, (const struct tenrec_member *)(const void *)at, err);
    return st;
}

void chain_members_remove(struct chain_members *m, tenrec_peer id)
{
    pthread_mutex_lock(&m->lock);
    if (id >= 0 && (size_t)id < m->room)
        m->v[id].here = false;
    pthread_mutex_unlock(&m->lock);
}

void chain_members_set_key(struct chain_members *m, tenrec_peer id, void *key)
{
    pthread_mutex_lock(&m->lock);
    if (id >= 0 && (size_t)id < m->room)
        m->v[id].key = key;
    pthread_mutex_unlock(&m->lock);
}

bool chain_members_find(struct chain_members *m, tenrec_peer id, struct chain_member *ret)
{
    bool found;

    pthread_mutex_lock(&m->lock);
    found = id >= 0 && (size_t)id < m->room && m->v[id].here;
    if (found)
        *ret = m->v[id];
    pthread_mutex_unlock(&m->lock);
    return found;
}

tenrec_status chain_members_check(struct chain_members *m, tenrec_peer id, uint64_t incarnation,
                                  const char *name, tenrec_error *err)
{
    struct chain_member known;

    if (id == TENREC_ANONYMOUS || m->links)
        return TENREC_OK;
    if (!chain_members_find(m, id, &known))
        return m->dynamic ? TENREC_OK
                          : tenrec_fail(err, TENREC_EPERM, "this group has no member %d", (int)id);
    if (known.incarnation && known.incarnation != incarnation)
        return m->dynamic ? TENREC_OK
                          : tenrec_fail(err, TENREC_EPERM,
                                        "another life of member %d of this group", (int)id);
    if (strcmp(known.name, name) == 0)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPERM, "member %d of this group has another name", (int)id);
}
