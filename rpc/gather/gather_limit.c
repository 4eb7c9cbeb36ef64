/* SPDX-License-Identifier: Apache-2.0 */
/* gather_limit.c - the limits of gathers, and the members that have not joined by then. */
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"

#include <stdlib.h>

/* "'a', 'b' did not join". */
static void gather_limit_missing(struct tenrec_worker *w, const struct gather *g, tenrec_error *why)
{
    size_t at = 0;

    tenrec_fail(why, TENREC_ETIMEDOUT, "%s", "");
    for (size_t i = 0; i < g->n && at < sizeof why->text; i++) {
        if (!g->part[i].joined)
            at += (size_t)snprintf(why->text + at, sizeof why->text - at, "%s'%s'", at ? ", " : "",
                                   peers_name(&w->peers, g->part[i].id));
    }
    if (at < sizeof why->text)
        snprintf(why->text + at, sizeof why->text - at, " did not join the gather in time");
}

/* Removes a gather whose limit has expired; *next_ns is the first of the other limits and
 * contacts. */
static struct gather *gather_limit_remove(struct tenrec_worker *w, uint64_t now, uint64_t *next_ns,
                                          tenrec_error *why)
{
    struct gathers *gs = gathers_of(w);
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
        gather_limit_missing(w, expired, why);
        gather_lead_remove_failed(gs, expired, why);
    }
    pthread_mutex_unlock(&gs->lock);
    return expired;
}

/* Returns true if the connection to a missing member has broken, or it is known to be dead. */
static bool gather_limit_is_lost(const struct tenrec_worker *w, tenrec_peer id)
{
    return contact_is_lost(w, id) || contact_refused(w, id);
}

/* Returns the members to contact of the first gather whose contact is due. NULL if none is due, or
 * out of memory. */
static tenrec_peer *gather_limit_list(struct tenrec_worker *w, uint64_t now, size_t *ret_n)
{
    struct gathers *gs = gathers_of(w);
    tenrec_peer *id = NULL;
    struct gather *g;

    *ret_n = 0;
    pthread_mutex_lock(&gs->lock);
    for (g = gs->open; g && g->contact_ns > now; g = g->next)
        ;
    if (g && (id = memory_new(g->n, sizeof *id)))
        for (size_t i = 0; i < g->n; i++)
            if (!g->part[i].joined && (g->contacted || gather_limit_is_lost(w, g->part[i].id)))
                id[(*ret_n)++] = g->part[i].id;
    if (g) {
        g->contact_ns = clock_later_ms(now, GATHER_CONTACT_MS);
        g->contacted = true;
    }
    pthread_mutex_unlock(&gs->lock);
    return id;
}

static void gather_limit_contact(struct tenrec_worker *w, uint64_t now)
{
    tenrec_peer *id;
    size_t n;

    while ((id = gather_limit_list(w, now, &n))) {
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
    gather_limit_contact(w, now);
    while ((g = gather_limit_remove(w, now, &next, &why)))
        gather_end_fail(w, g, &why);
    worker_leave(w);
    if (next != CLOCK_NEVER)
        loop_timer_arm(w->calls->deadlines, next);
}
