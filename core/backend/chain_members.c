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
    free(m->change);
}

void chain_members_start(struct chain_members *m, const struct tenrec_member *member, uint32_t n)
{
    pthread_mutex_lock(&m->lock);
    m->start = member;
    m->n_start = n;
    pthread_mutex_unlock(&m->lock);
}

static struct chain_member member_of(const struct tenrec_member *member)
{
    return (struct chain_member){ .rank = TENREC_HAS(member, linked) ? 0 : member->id,
                                  .incarnation = member->incarnation,
                                  .name = member->name,
                                  .address = member->address };
}

/* Returns the place for a change of that id, or NULL. Lock held. */
static struct chain_change *members_change(struct chain_members *m, tenrec_peer id)
{
    const size_t need = (size_t)id + 1, room = need < 2 * m->room ? 2 * m->room : need;
    struct chain_change *bigger;

    if (need <= m->room)
        return &m->change[id];
    bigger = memory_resize(m->change, room, sizeof *bigger);
    if (!bigger)
        return NULL;
    memset(bigger + m->room, 0, (room - m->room) * sizeof *bigger);
    m->change = bigger;
    m->room = room;
    return &m->change[id];
}

tenrec_status chain_members_add(struct chain_members *m, const struct tenrec_member *member,
                                tenrec_error *err)
{
    struct chain_change *c;

    if (member->id < 0)
        return tenrec_fail(err, TENREC_EINVAL, "member id %d: expected 0 or more", (int)member->id);
    pthread_mutex_lock(&m->lock);
    c = members_change(m, member->id);
    if (c)
        *c = (struct chain_change){ MEMBER_HERE, member_of(member) };
    pthread_mutex_unlock(&m->lock);
    return c ? TENREC_OK : memory_fail(err);
}

/* Lock held. */
static bool members_find(const struct chain_members *m, tenrec_peer id, struct chain_member *ret)
{
    const struct tenrec_member *member;

    if (id >= 0 && (size_t)id < m->room && m->change[id].state != MEMBER_AS_AT_START) {
        *ret = m->change[id].member;
        return m->change[id].state == MEMBER_HERE;
    }
    member = tenrec_member_find(m->start, m->n_start, id);
    if (member)
        *ret = member_of(member);
    return member != NULL;
}

bool chain_members_find(struct chain_members *m, tenrec_peer id, struct chain_member *ret)
{
    bool found;

    pthread_mutex_lock(&m->lock);
    found = members_find(m, id, ret);
    pthread_mutex_unlock(&m->lock);
    return found;
}

tenrec_status chain_members_remove(struct chain_members *m, tenrec_peer id, tenrec_error *err)
{
    struct chain_member member;
    struct chain_change *c = NULL;
    bool here;

    pthread_mutex_lock(&m->lock);
    here = members_find(m, id, &member);
    if (here && (c = members_change(m, id)))
        c->state = MEMBER_GONE;
    pthread_mutex_unlock(&m->lock);
    return !here || c ? TENREC_OK : memory_fail(err);
}

void chain_members_set_key(struct chain_members *m, tenrec_peer id, void *key)
{
    pthread_mutex_lock(&m->lock);
    if (id >= 0 && (size_t)id < m->room)
        m->change[id].member.key = key;
    pthread_mutex_unlock(&m->lock);
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
