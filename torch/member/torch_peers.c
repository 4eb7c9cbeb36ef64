/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "torch/member/member.h"
#include "torch/member/references.h"

#include <stdlib.h>
#include <string.h>

struct torch_peer {
    struct torch_peer *next; /* the latest first */
    tenrec_peer id;
    bool gone;
    char *address; /* owns */
    char name[TENREC_NAME_MAX + 1];
};

/* The member of that name, or of that id if `name` is NULL. Lock held. */
static struct torch_peer *peer_find(const struct tenrec_torch_member *m, const char *name,
                                    tenrec_peer id)
{
    for (struct torch_peer *p = m->peer; p; p = p->next)
        if (!p->gone && (name ? strcmp(p->name, name) == 0 : p->id == id))
            return p;
    return NULL;
}

/* The chain takes one change at a time, and no lock is held meanwhile. */
static void change_begin(struct tenrec_torch_member *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->changing)
        clock_cond_wait(&m->changed, &m->lock, CLOCK_NEVER);
    m->changing = true;
    pthread_mutex_unlock(&m->lock);
}

static void change_end(struct tenrec_torch_member *m)
{
    pthread_mutex_lock(&m->lock);
    m->changing = false;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Removes the member of that name or id, if there is one. Changing. */
static void peer_remove(struct tenrec_torch_member *m, const char *name, tenrec_peer id)
{
    struct torch_peer *p;
    tenrec_error why;

    pthread_mutex_lock(&m->lock);
    p = peer_find(m, name, id);
    if (p && p->id == m->id)
        p = NULL; /* by a stranger's claim */
    if (p)
        p->gone = true;
    pthread_mutex_unlock(&m->lock);
    if (!p)
        return;
    tenrec_chain_remove_member(m->chain, p->id);
    tenrec_fail(&why, TENREC_EPEER_LOST, "worker '%s' has left the group", p->name);
    tenrec_chain_end_calls(m->chain, p->id, &why);
    references_left(m, p->id, &why);
    log_line(TENREC_LOG_INFO, m->name, "'%s' (id %d) has left torch's group", p->name, (int)p->id);
}

/* The record of that life, also after its end; a new one if there is none. Changing. */
static struct torch_peer *peer_record(struct tenrec_torch_member *m, const char *name,
                                      tenrec_peer id, const char *address)
{
    struct torch_peer *p;

    pthread_mutex_lock(&m->lock);
    for (p = m->peer; p; p = p->next)
        if (p->id == id && strcmp(p->name, name) == 0 && strcmp(p->address, address) == 0)
            break;
    pthread_mutex_unlock(&m->lock);
    if (p || !(p = memory_new(1, sizeof *p)))
        return p;
    p->id = id;
    p->gone = true; /* until it is added */
    p->address = memory_text(address);
    snprintf(p->name, sizeof p->name, "%s", name);
    if (!p->address) {
        free(p);
        return NULL;
    }
    pthread_mutex_lock(&m->lock);
    p->next = m->peer;
    m->peer = p;
    pthread_mutex_unlock(&m->lock);
    return p;
}

static void peer_add(struct tenrec_torch_member *m, struct torch_peer *p)
{
    const struct tenrec_member member = {
        .size = sizeof member, .id = p->id, .name = p->name, .address = p->address
    };

    peer_remove(m, p->name, -1);
    peer_remove(m, NULL, p->id);
    if (p->id != m->id) /* the chain began with this one */
        tenrec_chain_add_member(m->chain, &member);
    pthread_mutex_lock(&m->lock);
    p->gone = false;
    pthread_mutex_unlock(&m->lock);
    log_line(TENREC_LOG_INFO, m->name, "'%s' (id %d) is in torch's group", p->name, (int)p->id);
}

tenrec_status torch_peers_join(struct tenrec_torch_member *m, const char *name, tenrec_peer id,
                               const char *address, tenrec_error *err)
{
    struct torch_peer *p;

    change_begin(m);
    p = peer_record(m, name, id, address);
    if (p && p->gone && references_join(m, id, name, NULL) != TENREC_OK)
        p = NULL;
    if (p && p->gone)
        peer_add(m, p);
    change_end(m);
    return p ? TENREC_OK : tenrec_fail(err, TENREC_ENOMEM, "no memory for worker '%s'", name);
}

void torch_peers_leave(struct tenrec_torch_member *m, const char *name)
{
    change_begin(m);
    peer_remove(m, name, -1);
    change_end(m);
}

tenrec_status torch_peers_id(struct tenrec_torch_member *m, const char *name, tenrec_peer *ret,
                             tenrec_error *err)
{
    struct suggestion near;
    const struct torch_peer *found;

    suggest_init(&near, name);
    pthread_mutex_lock(&m->lock);
    found = peer_find(m, name, -1);
    for (const struct torch_peer *p = m->peer; p && !found; p = p->next)
        if (!p->gone)
            suggest_try(&near, p->name);
    pthread_mutex_unlock(&m->lock);
    if (!found)
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "torch's group has no worker '%s'%s", name,
                           suggest_hint(&near));
    *ret = found->id;
    return TENREC_OK;
}

const char *torch_peer_name(struct tenrec_torch_member *m, tenrec_peer id)
{
    const struct torch_peer *p;

    pthread_mutex_lock(&m->lock);
    p = peer_find(m, NULL, id);
    for (const struct torch_peer *at = m->peer; at && !p; at = at->next)
        if (at->id == id)
            p = at;
    pthread_mutex_unlock(&m->lock);
    return p ? p->name : "";
}

tenrec_status torch_peers_others(struct tenrec_torch_member *m, struct tenrec_worker_info **ret,
                                 size_t *ret_n, tenrec_error *err)
{
    size_t n = 0, room;
    struct tenrec_worker_info *list;

    pthread_mutex_lock(&m->lock);
    for (const struct torch_peer *p = m->peer; p; p = p->next)
        n++;
    pthread_mutex_unlock(&m->lock);
    room = n ? n : 1;
    list = memory_new(room, sizeof *list);
    if (!list)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the workers of the group");
    n = 0;
    pthread_mutex_lock(&m->lock);
    for (const struct torch_peer *p = m->peer; p && n < room; p = p->next)
        if (!p->gone && p->id != m->id)
            list[n++] = (struct tenrec_worker_info){ .name = p->name, .id = p->id };
    pthread_mutex_unlock(&m->lock);
    *ret = list;
    *ret_n = n;
    return TENREC_OK;
}

void torch_peers_finish(struct tenrec_torch_member *m)
{
    struct torch_peer *next;

    for (struct torch_peer *p = m->peer; p; p = next) {
        next = p->next;
        free(p->address);
        free(p);
    }
    m->peer = NULL;
}

/* ---- for the program -------------------------------------------------------------------- */

bool torch_peers_alone(const struct tenrec_torch_member *m)
{
    for (const struct torch_peer *p = m->peer; p; p = p->next)
        if (!p->gone && p->id != m->id)
            return false;
    return true;
}

tenrec_status torch_peers_check_joined(const struct tenrec_torch_member *m, tenrec_error *err)
{
    if (m->why.code != TENREC_OK)
        return fail_with(err, &m->why);
    return m->state == TORCH_JOINED
               ? TENREC_OK
               : tenrec_fail(err, TENREC_ESHUTDOWN, "this process is no member of torch's group");
}

tenrec_status tenrec_torch_member_get_infos(struct tenrec_torch_member *m,
                                            struct tenrec_worker_info *ret, size_t room,
                                            size_t *ret_n, tenrec_error *err)
{
    tenrec_status st;

    *ret_n = 0;
    pthread_mutex_lock(&m->lock);
    st = torch_peers_check_joined(m, err);
    for (const struct torch_peer *p = m->peer; p && st == TENREC_OK; p = p->next) {
        size_t at = *ret_n < room ? *ret_n : room;

        if (p->gone)
            continue;
        ++*ret_n;
        for (; at > 0 && ret[at - 1].id > p->id; at--)
            if (at < room)
                ret[at] = ret[at - 1];
        if (at < room)
            ret[at] = (struct tenrec_worker_info){ .name = p->name, .id = p->id };
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

tenrec_status tenrec_torch_member_wait(struct tenrec_torch_member *m, const char *name,
                                       bool present, int64_t ms, tenrec_error *err)
{
    const uint64_t until_ns =
        ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms(ms > 0 ? (uint64_t)ms : 0);
    tenrec_status st;

    pthread_mutex_lock(&m->lock);
    while ((st = torch_peers_check_joined(m, err)) == TENREC_OK &&
           !!peer_find(m, name, -1) != present)
        if (!clock_cond_wait(&m->changed, &m->lock, until_ns)) {
            st = tenrec_fail(err, TENREC_ETIMEDOUT, "worker '%s' %s torch's group within %lld ms",
                             name, present ? "has not joined" : "has not left", (long long)ms);
            break;
        }
    pthread_mutex_unlock(&m->lock);
    return st;
}
