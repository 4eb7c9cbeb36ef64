/* SPDX-License-Identifier: Apache-2.0 */
/* gather_lead.c - the leader of gathers: arrived members, missing members, limits. The lock of the
 * gathers guards the open ones; a gather that was removed belongs to the remover. */
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/worker.h"
#include "rpc/worker/gather.h"
#include "rpc/worker/gather_set.h"
#include "rpc/worker/worker.h"

#include <stdlib.h>

enum { OPEN_MAX = 4096 };

/* A waiting leader contacts the missing members, so that a member that died unnoticed is named
 * before the limit: soon those whose connection broke, the others after a second, since each is
 * about to connect itself. */
enum { CONTACT_LOST_MS = 20, CONTACT_MS = 1000 };

struct gather {
    struct gather *next;
    int64_t number;
    uint64_t deadline_ns; /* the first limit of the arrived members */
    uint64_t contact_ns;  /* time of the next contact with the missing */
    bool contacted;       /* the next one is with all of them */
    size_t n, arrived;
    struct gather_part *part; /* n; the first `arrived` are set */
    tenrec_peer *id;          /* n: the set, ordered by name */
    char key[];               /* the set, as text */
};

void gathers_init(struct gathers *g)
{
    pthread_mutex_init(&g->lock, NULL);
}

static void gather_drop(struct gather *g)
{
    for (size_t i = 0; g->part && i < g->arrived; i++) {
        tenrec_value_drop(g->part[i].value);
        tenrec_future_drop(g->part[i].future);
    }
    free(g->part);
    free(g->id);
    free(g);
}

void gathers_reset(struct gathers *g)
{
    gather_sets_drop(&g->sets);
    while (g->open) {
        struct gather *one = g->open;
        g->open = one->next;
        gather_drop(one);
    }
    g->n_open = 0;
}

void gathers_finish(struct gathers *g)
{
    gathers_reset(g);
    pthread_mutex_destroy(&g->lock);
}

static void part_fail(struct tenrec_worker *w, struct gather_part *p, const tenrec_error *why)
{
    if (p->future)
        future_complete_error(p->future, why);
    else
        answer_error(w, p->id, p->msg_id, &p->route, true, why);
}

static void gather_lead_fail(struct tenrec_worker *w, struct gather *g, const tenrec_error *why)
{
    for (size_t i = 0; i < g->arrived; i++)
        part_fail(w, &g->part[i], why);
    gather_drop(g);
}

static bool has_arrived(const struct gather *g, tenrec_peer id)
{
    for (size_t i = 0; i < g->arrived; i++)
        if (g->part[i].id == id)
            return true;
    return false;
}

/* "'a', 'b' did not join". */
static void gather_lead_missing(struct tenrec_worker *w, const struct gather *g, tenrec_error *why)
{
    size_t at = 0;

    tenrec_fail(why, TENREC_ETIMEDOUT, "%s", "");
    for (size_t i = 0; i < g->n && at < sizeof why->text; i++) {
        if (!has_arrived(g, g->id[i]))
            at += (size_t)snprintf(why->text + at, sizeof why->text - at, "%s'%s'", at ? ", " : "",
                                   peers_name(&w->peers, g->id[i]));
    }
    if (at < sizeof why->text)
        snprintf(why->text + at, sizeof why->text - at, " did not join the gather in time");
}

static void gather_lead_complete(struct tenrec_worker *w, struct gather *g)
{
    struct tenrec_entry *entry = memory_new(g->n, sizeof *entry);
    struct tenrec_value map, *copy = NULL;
    tenrec_error why;

    if (!entry) {
        tenrec_fail(&why, TENREC_ENOMEM, "no memory for the values of %zu workers", g->n);
        gather_lead_fail(w, g, &why);
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        entry[i].key = peers_name(&w->peers, g->part[i].id);
        entry[i].value = *g->part[i].value;
    }
    map = tenrec_value_map(entry, g->n);
    for (size_t i = 0; i < g->n; i++) {
        struct gather_part *p = &g->part[i];
        if (!p->future)
            answer_value(w, p->id, p->msg_id, &p->route, TENREC_MSG_GATHER_RET, &map);
        else if (tenrec_value_copy(&map, &copy, &why) == TENREC_OK)
            future_complete_value(p->future, copy);
        else
            future_complete_error(p->future, &why);
    }
    free(entry);
    gather_drop(g);
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

/* Returns true if `id` is of the set. */
static bool has_member(const struct gather *g, tenrec_peer id)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->id[i] == id)
            return true;
    return false;
}

/* Returns true if `id` is missing from the gather. */
static bool waits_for(const struct gather *g, tenrec_peer id)
{
    return has_member(g, id) && !has_arrived(g, id);
}

/* Removes a failing gather, and remembers why for late members. Lock held. */
static void remove_failed(struct gathers *gs, struct gather *g, const tenrec_error *why)
{
    struct gather_set *set = gather_set_get(&gs->sets, g->key);

    gather_lead_remove(gs, g);
    if (set)
        gather_set_fail(set, g->number, why);
}

/* Removes a gather whose limit has expired; *next_ns is the first of the other limits and
 * contacts. */
static struct gather *remove_expired(struct tenrec_worker *w, uint64_t now, uint64_t *next_ns,
                                     tenrec_error *why)
{
    struct gathers *gs = &group_of(w)->gathers;
    struct gather **at, *g, *expired = NULL;

    *next_ns = CLOCK_NEVER;
    pthread_mutex_lock(&gs->lock);
    for (at = &gs->open; (g = *at) && !expired; at = &g->next) {
        const uint64_t first_ns = g->deadline_ns < g->contact_ns ? g->deadline_ns : g->contact_ns;

        if (g->deadline_ns <= now)
            expired = g;
        else if (first_ns < *next_ns)
            *next_ns = first_ns;
    }
    if (expired) {
        gather_lead_missing(w, expired, why);
        remove_failed(gs, expired, why);
    }
    pthread_mutex_unlock(&gs->lock);
    return expired;
}

/* Returns true if the connection to a missing member has broken, or it is known to be dead. */
static bool is_lost(const struct tenrec_worker *w, tenrec_peer id)
{
    return contact_is_lost(w, id) || contact_refused(w, id);
}

/* Returns the members to contact of the first gather whose contact is due. NULL if none is due, or
 * out of memory. */
static tenrec_peer *list_missing(struct tenrec_worker *w, uint64_t now, size_t *ret_n)
{
    struct gathers *gs = &group_of(w)->gathers;
    tenrec_peer *id = NULL;
    struct gather *g;

    *ret_n = 0;
    pthread_mutex_lock(&gs->lock);
    for (g = gs->open; g && g->contact_ns > now; g = g->next)
        ;
    if (g && (id = memory_new(g->n, sizeof *id)))
        for (size_t i = 0; i < g->n; i++)
            if (!has_arrived(g, g->id[i]) && (g->contacted || is_lost(w, g->id[i])))
                id[(*ret_n)++] = g->id[i];
    if (g) {
        g->contact_ns = clock_later_ms(now, CONTACT_MS);
        g->contacted = true;
    }
    pthread_mutex_unlock(&gs->lock);
    return id;
}

static void gather_contact(struct tenrec_worker *w, uint64_t now)
{
    tenrec_peer *id;
    size_t n;

    while ((id = list_missing(w, now, &n))) {
        for (size_t i = 0; i < n; i++)
            contact_try(w, id[i]);
        free(id);
    }
}

void gather_expire(struct tenrec_worker *w)
{
    uint64_t now = clock_now_ns(), next;
    struct gather *g;
    tenrec_error why;

    if (worker_enter(w, NULL) != TENREC_OK)
        return; /* shutdown fails all gathers */
    gather_contact(w, now);
    while ((g = remove_expired(w, now, &next, &why)))
        gather_lead_fail(w, g, &why);
    worker_leave(w);
    if (next != CLOCK_NEVER)
        loop_timer_arm(w->calls->deadlines, next);
}

static struct gather *gather_new(const struct participants *s, int64_t number)
{
    size_t len = strlen(s->key) + 1;
    struct gather *g = memory_new(1, sizeof *g + len);

    if (!g)
        return NULL;
    g->number = number;
    g->deadline_ns = CLOCK_NEVER;
    g->contact_ns = clock_deadline_ms(CONTACT_LOST_MS);
    g->n = s->n;
    g->part = memory_new(s->n, sizeof g->part[0]);
    g->id = memory_new(s->n, sizeof g->id[0]);
    if (!g->part || !g->id) {
        gather_drop(g);
        return NULL;
    }
    memcpy(g->id, s->id, s->n * sizeof g->id[0]);
    memcpy(g->key, s->key, len);
    return g;
}

/* Lock held. */
static struct gather *gather_lead_open(struct gathers *gs, const char *key, int64_t number)
{
    struct gather *g = gs->open;

    while (g && (g->number != number || strcmp(g->key, key) != 0))
        g = g->next;
    return g;
}

/* Finds or opens the gather; *ret is NULL if it was completed before. Lock held. */
static tenrec_status gather_lead_find(struct gathers *gs, const struct participants *s,
                                      int64_t number, struct gather **ret, tenrec_error *err)
{
    struct gather_set *set = gather_set_get(&gs->sets, s->key);
    struct gather *g = gather_lead_open(gs, s->key, number);
    tenrec_status st = TENREC_OK;

    if (!g && set && gather_set_was_whole(set, number)) {
        *ret = NULL;
        return TENREC_OK;
    }
    if (!g && set && (st = gather_set_verdict(set, number, err)) != TENREC_OK)
        return st;
    *ret = g;
    if (g)
        return TENREC_OK;
    if (gs->n_open >= OPEN_MAX)
        st = tenrec_fail(err, TENREC_EAGAIN, "%d gathers are open already", OPEN_MAX);
    else if (!set || !(g = gather_new(s, number)))
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

/* Sets *ret_again if this message has arrived before: backends may deliver a message twice. Fails
 * with EEXIST if the member has joined with another message. Lock held. */
static tenrec_status arrived_before(struct tenrec_worker *w, const struct gather *g,
                                    const struct gather_part *part, bool *ret_again,
                                    tenrec_error *err)
{
    *ret_again = !g;
    for (size_t i = 0; g && i < g->arrived; i++) {
        if (g->part[i].id != part->id)
            continue;
        *ret_again = g->part[i].msg_id == part->msg_id &&
                     g->part[i].route.generation == part->route.generation;
        if (!*ret_again)
            return tenrec_fail(err, TENREC_EEXIST, "'%s' has joined this gather already",
                               peers_name(&w->peers, part->id));
    }
    return TENREC_OK;
}

tenrec_status gather_join(struct tenrec_worker *w, const struct participants *s, int64_t number,
                          uint64_t limit, const struct gather_part *part, tenrec_error *err)
{
    struct gather *g = NULL, *whole = NULL;
    uint64_t next = limit;
    bool member = false, again = false;
    tenrec_status st;

    for (size_t i = 0; i < s->n; i++)
        member = member || s->id[i] == part->id;
    if (!member)
        return tenrec_fail(err, TENREC_EINVAL, "'%s' is not in the set that it gathers",
                           peers_name(&w->peers, part->id));
    pthread_mutex_lock(&group_of(w)->gathers.lock);
    st = gather_lead_find(&group_of(w)->gathers, s, number, &g, err);
    if (st == TENREC_OK)
        st = arrived_before(w, g, part, &again, err);
    if (st == TENREC_OK && g && !again) {
        g->part[g->arrived++] = *part;
        if (limit < g->deadline_ns)
            g->deadline_ns = limit;
        if (g->contact_ns < next)
            next = g->contact_ns;
        if (g->arrived == g->n) {
            whole = g;
            gather_lead_remove(&group_of(w)->gathers, g);
            gather_set_add_whole(gather_set_get(&group_of(w)->gathers.sets, s->key), number);
        }
    }
    pthread_mutex_unlock(&group_of(w)->gathers.lock);
    if (again)
        tenrec_value_drop(part->value);
    else if (whole)
        gather_lead_complete(w, whole);
    else if (st == TENREC_OK && next != CLOCK_NEVER)
        loop_timer_arm(w->calls->deadlines, next);
    return st;
}

void gather_refuse(struct tenrec_worker *w, const char *key, int64_t number, tenrec_peer id,
                   const tenrec_error *why)
{
    struct gather *g;

    pthread_mutex_lock(&group_of(w)->gathers.lock);
    g = gather_lead_open(&group_of(w)->gathers, key, number);
    if (g && waits_for(g, id))
        remove_failed(&group_of(w)->gathers, g, why);
    else
        g = NULL;
    pthread_mutex_unlock(&group_of(w)->gathers.lock);
    if (g)
        gather_lead_fail(w, g, why);
}

void gather_lost(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why)
{
    tenrec_error reported = *why;
    struct gather *g;

    tenrec_error_prefix(&reported, "'%s' was lost before it joined", peers_name(&w->peers, peer));
    do {
        pthread_mutex_lock(&group_of(w)->gathers.lock);
        for (g = group_of(w)->gathers.open; g && !waits_for(g, peer); g = g->next)
            ;
        if (g)
            remove_failed(&group_of(w)->gathers, g, &reported);
        pthread_mutex_unlock(&group_of(w)->gathers.lock);
        if (g)
            gather_lead_fail(w, g, &reported);
    } while (g);
}

void gather_forget(struct tenrec_worker *w, const char *name, uint64_t incarnation)
{
    pthread_mutex_lock(&group_of(w)->gathers.lock);
    gather_sets_forget(&group_of(w)->gathers.sets, name, incarnation);
    pthread_mutex_unlock(&group_of(w)->gathers.lock);
}

void gather_fail_all(struct tenrec_worker *w, const tenrec_error *why)
{
    struct gather *g;

    for (;;) {
        pthread_mutex_lock(&group_of(w)->gathers.lock);
        g = group_of(w)->gathers.open;
        if (g)
            gather_lead_remove(&group_of(w)->gathers, g);
        pthread_mutex_unlock(&group_of(w)->gathers.lock);
        if (!g)
            return;
        gather_lead_fail(w, g, why);
    }
}
