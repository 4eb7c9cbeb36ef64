/* SPDX-License-Identifier: Apache-2.0 */
#include "datagram.h"

#include <stdlib.h>
#include <string.h>

/* ---- members ------------------------------------------------------------------------- */

struct member *member_find(struct datagram *d, tenrec_peer id)
{
    for (size_t i = 0; i < d->n_members; i++)
        if (d->member[i].id == id && d->member[i].here)
            return &d->member[i];
    return NULL;
}

tenrec_peer member_named(const struct datagram *d, const char *name)
{
    for (size_t i = 0; i < d->n_members; i++)
        if (d->member[i].here && strcmp(d->member[i].name, name) == 0)
            return d->member[i].id;
    return TENREC_ANONYMOUS;
}

tenrec_status member_add(struct datagram *d, const struct tenrec_member *member)
{
    const size_t prefix = strlen(ADDRESS_PREFIX);
    struct member *more;

    if (strncmp(member->address, ADDRESS_PREFIX, prefix) != 0 ||
        strlen(member->address + prefix) != NAME_LEN)
        return TENREC_OK; /* a member of another backend: a call of it finds no member */
    pthread_mutex_lock(&d->lock);
    more = realloc(d->member, (d->n_members + 1) * sizeof *more);
    if (more) {
        d->member = more;
        more[d->n_members] = (struct member){ .id = member->id, .here = true };
        snprintf(more[d->n_members++].name, sizeof more->name, "%s", member->address + prefix);
    }
    pthread_mutex_unlock(&d->lock);
    return more ? TENREC_OK : TENREC_ENOMEM;
}

/* ---- links ----------------------------------------------------------------------------- */

static struct link *link_new(struct datagram *d, const char *name, bool called, tenrec_peer peer,
                             uint64_t number)
{
    struct link *l = d->n_links < LINKS_MAX ? calloc(1, sizeof *l) : NULL;

    if (!l)
        return NULL;
    d->n_links++;
    snprintf(l->name, sizeof l->name, "%s", name);
    l->called = called;
    l->peer = peer;
    l->serial = ++d->serials;
    l->number = called ? l->serial : number;
    l->last = &l->first;
    l->next = d->links;
    d->links = l;
    return l;
}

struct link *link_to_peer(struct datagram *d, tenrec_peer to)
{
    const struct member *m = member_find(d, to);
    struct link *l = d->links;

    while (m && l && !(l->called && l->peer == to))
        l = l->next;
    return m && !l ? link_new(d, m->name, true, to, 0) : m ? l : NULL;
}

struct link *link_by_route(struct datagram *d, struct tenrec_route route)
{
    struct link *l = d->links;

    while (l && l->serial != route.generation)
        l = l->next;
    return l;
}

static void link_remove(struct datagram *d, struct link *l)
{
    struct link **at = &d->links;

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    d->n_links--;
}

struct link *link_of_datagram(struct datagram *d, int which, const char *name,
                              const struct head *head)
{
    struct link *l;

    pthread_mutex_lock(&d->lock);
    for (l = d->links; l; l = l->next)
        if (l->called == (which == ANSWERS) && l->number == head->link &&
            strcmp(l->name, name) == 0)
            break;
    if (!l && which == REQUESTS && head->link)
        l = link_new(d, name, false, TENREC_ANONYMOUS, head->link);
    pthread_mutex_unlock(&d->lock);
    return l;
}

struct link *link_after(struct datagram *d, const struct link *l)
{
    struct link *next;

    pthread_mutex_lock(&d->lock);
    next = l ? l->next : d->links;
    pthread_mutex_unlock(&d->lock);
    return next;
}

void link_end(struct datagram *d, struct link *l, tenrec_status code, int number)
{
    struct outgoing *o, *next;
    tenrec_error why;
    tenrec_peer from;

    pthread_mutex_lock(&d->lock);
    link_remove(d, l);
    from = l->called ? l->peer : member_named(d, l->name);
    pthread_mutex_unlock(&d->lock);
    tenrec_fail(&why, l->used ? TENREC_EPEER_LOST : code, "peer %d: %s", (int)from,
                number ? strerror(number) : "the worker shuts down");
    why.os_errno = number;
    if (number && l->used && l->called)
        d->self->host->peer_lost(d->self, from, &why);
    else if (number && !l->called && from >= 0)
        d->self->host->caller_lost(d->self, from, &why);
    for (o = l->first; o; o = next) {
        next = o->next;
        outgoing_end(d, o, &why);
    }
    free(l->in);
    free(l);
}
