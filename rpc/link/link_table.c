/* SPDX-License-Identifier: Apache-2.0 */
/* link_table.c - which workers are linked. A linked worker is a member of the chain like those that
 * join a group while it runs, with an id that this worker chooses. */
#include "rpc/link/links.h"

#include "core/backend/backend.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/observe.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/worker/worker.h"

#include <stdlib.h>

struct link_table *link_table_new(void)
{
    struct link_table *t = memory_new(1, sizeof *t);

    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    t->refs = 1;
    return t;
}

/* Unlocks. */
static void table_unlock_drop(struct link_table *t)
{
    const bool last = --t->refs == 0;

    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void link_table_drop(struct link_table *t)
{
    pthread_mutex_lock(&t->lock);
    table_unlock_drop(t);
}

/* The lock is held. */
static void link_free(struct tenrec_link *l)
{
    l->table->refs--; /* the worker, or the caller, has another share */
    link_record_free(&l->record);
    free(l);
}

/* ---- adding ----------------------------------------------------------------------- */

static struct tenrec_link *link_find(const struct link_table *t, const char *name)
{
    struct tenrec_link *l = t->first;

    while (l && (l->ending || strcmp(l->record.member.name, name) != 0))
        l = l->next;
    return l;
}

/* Returns true if no connection to the peer of a link is left that the program does not hold. */
static bool link_is_stale(const struct tenrec_link *l)
{
    const struct tenrec_worker *w = l->table->worker;

    return !l->ending && l->holders == 0 &&
           (contact_is_lost(w, l->id) || contact_refused(w, l->id));
}

static struct tenrec_link *table_find_stale(const struct link_table *t)
{
    struct tenrec_link *l = t->first;

    while (l && !link_is_stale(l))
        l = l->next;
    return l;
}

static bool table_uses(const struct link_table *t, tenrec_peer id)
{
    const struct tenrec_link *l = t->first;

    while (l && l->id != id)
        l = l->next;
    return l != NULL;
}

/* The next free id after the last, so that one is not used again soon. Returns -1 if there is none.
 */
static tenrec_peer table_next_id(const struct link_table *t)
{
    const tenrec_peer first = (tenrec_peer)t->worker->peers.members,
                      n = (tenrec_peer)t->worker->peers.room - first;

    for (tenrec_peer i = 1; i <= n; i++) {
        const tenrec_peer id = first + (t->last + i - first) % n;

        if (!table_uses(t, id))
            return id;
    }
    return -1;
}

/* As a member that joins; no message may be sent to it before. */
static tenrec_status link_join(struct tenrec_link *l, tenrec_error *err)
{
    struct tenrec_worker *w = l->table->worker;
    const struct member *m = &l->record.member;
    const struct tenrec_member member = { .size = sizeof member,
                                          .id = l->id,
                                          .incarnation = (uint64_t)m->incarnation,
                                          .name = m->name,
                                          .address = m->address,
                                          .token = m->token,
                                          .linked = 1 };
    tenrec_status st = rref_context_set_name(rref_context_of(w), l->id, m->name, err);

    if (st != TENREC_OK)
        return st;
    disconnects_forget(w, l->id);
    contact_forget(w, l->id);
    chain_member_joined(w->chain, &member);
    chain_member_set_key(w->chain, l->id, l->record.secret);
    st = peers_add(&w->peers, l->id, member.incarnation, m->name, err);
    if (st != TENREC_OK)
        chain_member_left(w->chain, l->id);
    return st;
}

static tenrec_status link_new(struct link_table *t, tenrec_peer id, struct link_record *record,
                              struct tenrec_link **ret, tenrec_error *err)
{
    struct tenrec_link *l = memory_new(1, sizeof *l);
    tenrec_status st;

    if (!l)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a link");
    l->id = id;
    l->table = t;
    l->record = *record;
    st = link_join(l, err);
    if (st != TENREC_OK) {
        free(l);
        return st;
    }
    *record = (struct link_record){ .secret = NULL };
    t->refs++;
    t->last = l->id;
    l->listed = true;
    l->next = t->first;
    *ret = t->first = l;
    observe_note(t->worker, NOTE_JOINED, l->id, 0, TENREC_OK, l->record.member.name);
    return TENREC_OK;
}

/* The peer has connected without a secret, or the program gives one now. */
static void link_take_secret(struct tenrec_link *l, struct link_record *record)
{
    if (l->record.secret || !record->secret)
        return;
    l->record.secret = record->secret;
    record->secret = NULL;
    chain_member_set_key(l->table->worker->chain, l->id, l->record.secret);
}

static bool link_is_of(const struct tenrec_link *l, const struct link_record *record)
{
    return l->record.member.token == record->member.token &&
           l->record.member.incarnation == record->member.incarnation &&
           strcmp(l->record.member.address, record->member.address) == 0;
}

/* ---- ending ------------------------------------------------------------------------ */

/* Fails what waits for the peer of a link that this thread has marked as ending, in the order in
 * which a member leaves a group. The worker is entered, no lock held: callbacks of the program
 * run. */
static void link_end(struct tenrec_worker *w, struct tenrec_link *l)
{
    const tenrec_peer id = l->id;
    tenrec_error why;

    tenrec_fail(&why, TENREC_EPEER_LOST, "the link to '%s' was dropped", l->record.member.name);
    rref_peer_gone(rref_context_of(w), id);
    rrefs_lost(w, id, false, &why);
    peers_remove(&w->peers, id);
    chain_member_left(w->chain, id);
    peers_blame(&w->peers, id, &why);
    call_fail_peer(w, id, &why);
    disconnects_forget(w, id);
    observe_note(w, NOTE_LEFT, id, 0, why.code, l->record.member.name);
    pthread_mutex_lock(&l->table->lock);
    l->id = -1;
    pthread_mutex_unlock(&l->table->lock);
}

/* ---- both -------------------------------------------------------------------------- */

/* Once. The lock is held. If a stale link is in the way, *ret_stale is that one, marked as ending.
 */
static tenrec_status table_add(struct link_table *t, struct link_record *record,
                               struct tenrec_link **ret, struct tenrec_link **ret_stale,
                               tenrec_error *err)
{
    const char *name = record->member.name;
    struct tenrec_link *l = link_find(t, name);
    tenrec_peer id = -1;

    *ret_stale = NULL;
    if (l && link_is_of(l, record)) {
        link_take_secret(l, record);
        *ret = l;
        return TENREC_OK;
    }
    if (l && link_is_stale(l))
        *ret_stale = l; /* the peer has started again */
    else if (l)
        return tenrec_fail(err, TENREC_EEXIST,
                           "another worker that is linked is called '%s': drop that link, or give "
                           "one another worker.name",
                           name);
    else if ((id = table_next_id(t)) < 0)
        *ret_stale = table_find_stale(t);
    if (*ret_stale)
        (*ret_stale)->ending = true;
    else if (id < 0)
        return tenrec_fail(err, TENREC_EAGAIN, "%zu workers are linked: drop links that are unused",
                           t->worker->peers.room - t->worker->peers.members);
    else
        return link_new(t, id, record, ret, err);
    return TENREC_OK;
}

tenrec_status link_add(struct tenrec_worker *w, struct link_record *record, bool hold,
                       struct tenrec_link **ret, bool *ret_first, tenrec_error *err)
{
    struct link_table *t = *link_table_of(w);
    struct tenrec_link *stale = NULL;
    tenrec_status st;

    *ret_first = false;
    do {
        if (stale)
            link_end(w, stale);
        pthread_mutex_lock(&t->lock);
        if (!t->worker)
            st = tenrec_fail(err, TENREC_ESHUTDOWN, "the worker shuts down");
        else if (strcmp(record->member.name, w->self.name) == 0)
            st = tenrec_fail(err, TENREC_EEXIST,
                             "both workers are called '%s': give one another worker.name",
                             record->member.name);
        else
            st = table_add(t, record, ret, &stale, err);
        if (st == TENREC_OK && !stale && hold)
            *ret_first = (*ret)->holders++ == 0;
        pthread_mutex_unlock(&t->lock);
    } while (st == TENREC_OK && stale);
    return st;
}

void link_table_clear(struct link_table *t)
{
    struct tenrec_link *l, *next;

    pthread_mutex_lock(&t->lock);
    for (l = t->first; l; l = next) {
        next = l->next;
        l->id = -1;
        l->listed = false;
        if (l->holders == 0)
            link_free(l);
    }
    t->first = NULL;
    pthread_mutex_unlock(&t->lock);
}

const char *tenrec_link_name(const struct tenrec_link *l)
{
    return l->record.member.name;
}

/* Marks the link as ending if that was the last holder's. Returns its worker then, entered. */
static struct tenrec_worker *link_let_go(struct tenrec_link *l)
{
    struct tenrec_worker *w = l->table->worker;

    if (--l->holders > 0 || l->ending || !w || worker_enter(w, NULL) != TENREC_OK)
        return NULL;
    l->ending = true;
    return w;
}

void tenrec_link_drop(struct tenrec_link *l)
{
    struct link_table *t;
    struct tenrec_worker *w;

    if (!l)
        return;
    t = l->table;
    pthread_mutex_lock(&t->lock);
    t->refs++;
    w = link_let_go(l);
    if (l->holders == 0 && !l->listed)
        link_free(l);
    if (w) {
        pthread_mutex_unlock(&t->lock);
        link_end(w, l); /* listed: the worker, which is entered, does not end before */
        worker_leave(w);
        pthread_mutex_lock(&t->lock);
    }
    table_unlock_drop(t);
}
