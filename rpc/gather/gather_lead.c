/* SPDX-License-Identifier: Apache-2.0 */
/* gather_lead.c - gathers in which this worker has children, or is alone: the members that arrive,
 * and those that cannot. The lock of the gathers guards the open ones; a gather that was removed
 * belongs to the remover. */
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"

#include <stdlib.h>

enum { OPEN_MAX = 4096 };

/* A level of the tree reports what it misses within this time. */
enum { LEVEL_MS = 15 };

/* The part of `id`; NULL if that is neither this worker nor a child of it. */
static struct gather_part *gather_part_of(struct gather *g, tenrec_peer id)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->part[i].id == id)
            return &g->part[i];
    return NULL;
}

/* Removes the gather from the open ones. Lock held. */
static void gather_lead_remove(struct gathers *gs, const struct gather *g)
{
    struct gather **at = &gs->open;

    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    gs->n_open--;
}

/* Returns true if `id` is missing from the gather. */
static bool waits_for(struct gather *g, tenrec_peer id)
{
    const struct gather_part *p = gather_part_of(g, id);

    return p && !p->joined;
}

void gather_lead_remove_failed(struct gathers *gs, struct gather *g, const tenrec_error *why)
{
    struct gather_set *set = gather_set_find(gs->sets, &g->who->hash);

    gather_lead_remove(gs, g);
    if (set)
        gather_set_fail(set, g->number, why);
}

static struct gather *gather_new(struct participants *s, size_t degree, int64_t number)
{
    const struct gather_tree t = { s->n, degree };
    size_t first = 0, n = 1 + gather_tree_children(&t, s->me, &first);
    struct gather *g = memory_new(1, sizeof *g + n * sizeof g->part[0]);

    if (!g)
        return NULL;
    g->number = number;
    g->deadline_ns = CLOCK_NEVER;
    g->contact_ns = clock_deadline_ms(GATHER_CONTACT_LOST_MS);
    g->who = participants_share(s);
    g->tree = t;
    g->parent = s->me > 0 ? s->id[gather_tree_parent(&t, s->me)] : -1;
    g->n = n;
    for (size_t i = 0; i < n; i++)
        g->part[i].id = s->id[i == 0 ? s->me : first + i - 1];
    return g;
}

/* Lock held. */
static struct gather *gather_lead_open(struct gathers *gs, const struct participants *s,
                                       int64_t number)
{
    struct gather *g = gs->open;

    while (g && (g->number != number || !set_hash_equals(&g->who->hash, &s->hash)))
        g = g->next;
    return g;
}

/* Finds or opens the gather; *ret is NULL if it was completed before. Lock held. */
static tenrec_status gather_lead_find(struct gathers *gs, struct participants *s, int64_t number,
                                      struct gather **ret, tenrec_error *err)
{
    struct gather *g = gather_lead_open(gs, s, number);
    struct gather_set *set;
    tenrec_status st = TENREC_OK;

    *ret = g;
    if (g)
        return TENREC_OK;
    set = gather_set_get(&gs->sets, s);
    if (set && gather_set_was_whole(set, number))
        return TENREC_OK;
    if (set && (st = gather_set_verdict(set, number, err)) != TENREC_OK)
        return st;
    if (gs->n_open >= OPEN_MAX)
        st = tenrec_fail(err, TENREC_EAGAIN, "%d gathers are open already", OPEN_MAX);
    else if (!set || !(g = gather_new(s, gs->degree, number)))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a gather");
    if (st != TENREC_OK) {
        if (set)
            gather_set_fail(set, number, err);
        return st;
    }
    g->next = gs->open;
    gs->open = g;
    gs->n_open++;
    *ret = g;
    return TENREC_OK;
}

/* Finds the part of a member that joins. Sets *ret_again if this message has arrived before:
 * backends may deliver a message twice. Fails with EEXIST if the member has joined with another
 * message. Lock held. */
static tenrec_status gather_admit(struct tenrec_worker *w, struct gather *g,
                                  const struct gather_part *part, struct gather_part **ret,
                                  bool *ret_again, tenrec_error *err)
{
    const struct tenrec_value *v = part->value;
    struct gather_part *p = g ? gather_part_of(g, part->id) : NULL;
    size_t size;

    *ret = p;
    *ret_again = !g || (p && p->joined && p->msg_id == part->msg_id &&
                        p->route.generation == part->route.generation && !part->future);
    if (*ret_again)
        return TENREC_OK;
    if (!p)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "a gather was sent to '%s', which does not lead it",
                           peers_name(&w->peers, w->self.id));
    if (p->joined)
        return tenrec_fail(err, TENREC_EEXIST, "'%s' has joined this gather already",
                           peers_name(&w->peers, part->id));
    size =
        p == g->part ? 1 : gather_tree_size(&g->tree, gather_number_of(g, (size_t)(p - g->part)));
    if (v->type != TENREC_VALUE_NIL && (v->type != TENREC_VALUE_ARRAY || v->n != size))
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed gather: expected a list of %zu values",
                           size);
    return TENREC_OK;
}

/* Members farther up in the tree wait a little longer, so that the parent of a missing child names
 * it. */
static uint64_t gather_limit(const struct gather *g, uint64_t limit)
{
    const unsigned height = gather_tree_height(&g->tree, g->who->me);

    return height > 1 && limit != CLOCK_NEVER
               ? clock_later_ms(limit, (uint64_t)(height - 1) * LEVEL_MS)
               : limit;
}

/* Lock held. Returns true if the gather is whole now. */
static bool gather_take_part(struct gathers *gs, struct gather *g, struct gather_part *p,
                             const struct gather_part *part, uint64_t limit)
{
    struct gather_set *set;

    *p = *part;
    p->joined = true;
    g->arrived++;
    if (gather_limit(g, limit) < g->deadline_ns)
        g->deadline_ns = gather_limit(g, limit);
    if (g->arrived < g->n)
        return false;
    gather_lead_remove(gs, g);
    set = gather_set_find(gs->sets, &g->who->hash);
    if (set) /* else a member has left meanwhile */
        gather_set_add_whole(set, g->number);
    return true;
}

static tenrec_status gather_check_member(struct tenrec_worker *w, const struct participants *s,
                                         tenrec_peer id, tenrec_error *err)
{
    if (participants_has(s, id))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL, "'%s' is not in the set that it gathers",
                       peers_name(&w->peers, id));
}

tenrec_status gather_join(struct tenrec_worker *w, struct participants *s, int64_t number,
                          uint64_t limit, const struct gather_part *part, tenrec_error *err)
{
    struct gathers *gs = gathers_of(w);
    struct gather *g = NULL;
    struct gather_part *p = NULL;
    uint64_t next = CLOCK_NEVER;
    bool again = false, whole = false;
    tenrec_status st = gather_check_member(w, s, part->id, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&gs->lock);
    st = gather_lead_find(gs, s, number, &g, err);
    if (st == TENREC_OK)
        st = gather_admit(w, g, part, &p, &again, err);
    if (st == TENREC_OK && !again) {
        whole = gather_take_part(gs, g, p, part, limit);
        next = g->deadline_ns < g->contact_ns ? g->deadline_ns : g->contact_ns;
    }
    pthread_mutex_unlock(&gs->lock);
    if (again)
        tenrec_value_drop(part->value);
    else if (whole && g->parent >= 0)
        gather_rise_whole(w, g);
    else if (whole)
        gather_end_complete(w, g);
    else if (st == TENREC_OK && next != CLOCK_NEVER)
        loop_timer_arm(w->calls->deadlines, next);
    return st;
}

/* Remembers why a gather has failed that is not open here. Returns true if that was not known. Lock
 * held. */
static bool gather_note_failure(struct gathers *gs, struct participants *s, int64_t number,
                                const tenrec_error *why)
{
    struct gather_set *set = gather_set_get(&gs->sets, s);

    if (!set || gather_set_was_whole(set, number) ||
        gather_set_verdict(set, number, NULL) != TENREC_OK)
        return false;
    gather_set_fail(set, number, why);
    return true;
}

/* Returns true if `id` is a child of ours, or this worker. */
static bool is_part(const struct participants *s, const struct gather_tree *t, tenrec_peer id)
{
    size_t first, n = gather_tree_children(t, s->me, &first);

    for (size_t i = 0; i < n; i++)
        if (s->id[first + i] == id)
            return true;
    return s->id[s->me] == id;
}

void gather_refuse(struct tenrec_worker *w, struct participants *s, int64_t number, tenrec_peer id,
                   const tenrec_error *why)
{
    struct gathers *gs = gathers_of(w);
    const struct gather_tree t = { s->n, gs->degree };
    struct gather *g;
    bool fresh = false;

    pthread_mutex_lock(&gs->lock);
    g = gather_lead_open(gs, s, number);
    if (g && waits_for(g, id))
        gather_lead_remove_failed(gs, g, why);
    else if (!g && is_part(s, &t, id))
        fresh = gather_note_failure(gs, s, number, why);
    else
        g = NULL;
    pthread_mutex_unlock(&gs->lock);
    if (g)
        gather_end_fail(w, g, why);
    else if (fresh && s->me > 0)
        gather_rise_failed(w, s, number, s->id[gather_tree_parent(&t, s->me)], why);
}

void gather_lost(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why)
{
    tenrec_error reported = *why;
    struct gather *g;

    tenrec_error_prefix(&reported, "'%s' was lost before it joined", peers_name(&w->peers, peer));
    do {
        pthread_mutex_lock(&gathers_of(w)->lock);
        for (g = gathers_of(w)->open; g && !waits_for(g, peer); g = g->next)
            ;
        if (g)
            gather_lead_remove_failed(gathers_of(w), g, &reported);
        pthread_mutex_unlock(&gathers_of(w)->lock);
        if (g)
            gather_end_fail(w, g, &reported);
    } while (g);
}

void gather_forget(struct tenrec_worker *w, tenrec_peer id)
{
    pthread_mutex_lock(&gathers_of(w)->lock);
    gather_sets_forget(&gathers_of(w)->sets, id);
    pthread_mutex_unlock(&gathers_of(w)->lock);
}

void gather_fail_all(struct tenrec_worker *w, const tenrec_error *why)
{
    tenrec_error reported = *why;
    struct gather *g;

    tenrec_error_prefix(&reported, "'%s'", w->self.name);

    for (;;) {
        pthread_mutex_lock(&gathers_of(w)->lock);
        g = gathers_of(w)->open;
        if (g)
            gather_lead_remove(gathers_of(w), g);
        pthread_mutex_unlock(&gathers_of(w)->lock);
        if (!g)
            return;
        gather_end_fail(w, g, &reported);
    }
}
