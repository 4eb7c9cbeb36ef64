/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/weights/record_set.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- sets --------------------------------------------------------------------------- */

static void part_free(struct record_part *p)
{
    tenrec_value_drop(p->pieces);
    free(p->worker);
    free(p);
}

static void version_free(struct record_version *v)
{
    struct record_part *p;

    while ((p = v->parts) != NULL) {
        v->parts = p->next;
        part_free(p);
    }
    free(v);
}

struct record_set *record_set_get(struct record *r, const char *name)
{
    struct record_set *s = r->sets;

    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    if (s)
        return s;
    s = memory_new(1, sizeof *s);
    if (!s || !(s->name = memory_text(name))) {
        free(s);
        return NULL;
    }
    s->next = r->sets;
    r->sets = s;
    return s;
}

void record_set_free(struct record_set *s)
{
    struct record_version *v;

    while ((v = s->versions) != NULL) {
        s->versions = v->next;
        version_free(v);
    }
    while (s->holders)
        record_holder_remove(s, s->holders);
    free(s->name);
    free(s);
}

/* ---- versions ----------------------------------------------------------------------- */

struct record_version *record_newest(const struct record_set *s)
{
    struct record_version *v = s->versions;

    while (v && !v->visible)
        v = v->next;
    return v;
}

struct record_version *record_version_find(const struct record_set *s, int64_t number)
{
    struct record_version *v = s->versions;

    while (v && v->number != number)
        v = v->next;
    return v;
}

static struct record_version *version_add(struct record_set *s, int64_t number, int64_t publishers)
{
    struct record_version *v = memory_new(1, sizeof *v), **at = &s->versions;

    if (!v)
        return NULL;
    v->number = number;
    v->publishers = publishers;
    while (*at && (*at)->number > number)
        at = &(*at)->next;
    v->next = *at;
    *at = v;
    return v;
}

static tenrec_status part_check(const struct record_set *s, const struct record_ask *a,
                                const struct record_version *v, tenrec_error *err)
{
    const struct record_version *newest = record_newest(s);

    if (newest && a->version <= newest->number)
        return tenrec_fail(err, TENREC_EEXIST,
                           "version %lld of '%s' is not newer than version %lld, which is "
                           "published",
                           (long long)a->version, s->name, (long long)newest->number);
    if (v && v->publishers != a->publishers)
        return tenrec_fail(err, TENREC_EINVAL,
                           "version %lld of '%s' has %lld publishers, and '%s' names %lld",
                           (long long)a->version, s->name, (long long)v->publishers, a->worker,
                           (long long)a->publishers);
    for (const struct record_part *p = v ? v->parts : NULL; p; p = p->next)
        if (strcmp(p->worker, a->worker) == 0)
            return tenrec_fail(err, TENREC_EEXIST,
                               "'%s' has published its part of version %lld of '%s' already",
                               a->worker, (long long)a->version, s->name);
    return TENREC_OK;
}

static struct record_part *part_new(const struct record_ask *a)
{
    struct record_part *p = memory_new(1, sizeof *p);

    if (!p)
        return NULL;
    p->number = a->number;
    p->worker = memory_text(a->worker);
    if (p->worker && tenrec_value_copy(a->pieces, &p->pieces, NULL) == TENREC_OK)
        return p;
    free(p->worker);
    free(p);
    return NULL;
}

tenrec_status record_add_part(struct record_set *s, const struct record_ask *a, tenrec_error *err)
{
    struct record_version *v = record_version_find(s, a->version);
    const tenrec_status st = part_check(s, a, v, err);
    struct record_part *p;

    if (st != TENREC_OK)
        return st;
    p = part_new(a);
    if (!p || (!v && !(v = version_add(s, a->version, a->publishers))) ||
        !record_holder_add(s, a, a->version, HOLDER_PUBLISHES)) {
        if (p)
            part_free(p);
        return memory_fail(err);
    }
    p->next = v->parts;
    v->parts = p;
    v->visible = (int64_t)++v->n_parts == v->publishers;
    return TENREC_OK;
}

static void part_remove(struct record_version *v, const char *worker, int64_t number)
{
    struct record_part **at = &v->parts, *p;

    while ((p = *at) != NULL && (p->number != number || strcmp(p->worker, worker) != 0))
        at = &p->next;
    if (!p)
        return;
    *at = p->next;
    part_free(p);
    v->n_parts--;
    v->broken = v->visible;
}

/* Returns true if it has reported about the newest version. */
static bool holder_reports(const struct record_set *s, const struct record_holder *h)
{
    const struct record_version *newest = record_newest(s);

    return h->state >= HOLDER_APPLIED && newest && h->version == newest->number;
}

void record_remove(struct record_set *s, const char *worker, int64_t number)
{
    struct record_holder *h = record_holder_find(s, worker, number);

    for (struct record_version *v = s->versions; v; v = v->next)
        part_remove(v, worker, number);
    if (h && holder_reports(s, h))
        h->left = true; /* the publisher may not have read the report yet */
    else if (h)
        record_holder_remove(s, h);
}

void record_remove_part(struct record_set *s, const struct record_ask *a)
{
    const struct record_version *v = record_version_find(s, a->version);

    if (v && !v->visible)
        record_remove(s, a->worker, a->number);
}

/* ---- sweeping ----------------------------------------------------------------------- */

static bool version_is_used(const struct record_set *s, const struct record_version *v)
{
    const struct record_version *newest = record_newest(s);

    if (!newest || v->number >= newest->number)
        return true;
    for (const struct record_holder *h = s->holders; h; h = h->next)
        if (h->state == HOLDER_PULLS && h->version == v->number)
            return v->visible;
    return false;
}

/* Removes a version, and its publishers from the holders. */
static void version_remove(struct record_set *s, struct record_version *v)
{
    struct record_version **at = &s->versions;

    for (struct record_part *p = v->parts; p; p = p->next) {
        struct record_holder *h = record_holder_find(s, p->worker, p->number);
        if (h)
            record_holder_remove(s, h);
    }
    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    version_free(v);
}

static bool holder_is_over(const struct record_holder *h, struct tenrec_worker *w, uint64_t now_ns)
{
    tenrec_peer id;

    return h->left || (h->state == HOLDER_PULLS && now_ns >= h->lease_until_ns) ||
           peers_find(&w->peers, h->worker, &id, NULL) != TENREC_OK;
}

void record_set_sweep(struct record_set *s, struct tenrec_worker *w, uint64_t now_ns)
{
    for (struct record_holder *h = s->holders, *next; h; h = next) {
        next = h->next;
        if (holder_is_over(h, w, now_ns))
            record_remove(s, h->worker, h->number);
    }
    for (struct record_version *v = s->versions, *next; v; v = next) {
        next = v->next;
        if (!version_is_used(s, v))
            version_remove(s, v);
    }
}
