/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c - a pull: reads a version, and goes on with another source when one fails. */
#include "rpc/weights/pull.h"

#include "rpc/weights/record.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- a version ---------------------------------------------------------------------- */

/* Returns true if another source may do better. */
static bool pull_may_go_on(struct pull *p, tenrec_status st)
{
    if (st == TENREC_ENOMEM || st == TENREC_EINVAL || st == TENREC_EWOULDBLOCK ||
        st == TENREC_ECANCELED || st == TENREC_ETOOBIG || clock_passed(p->until_ns))
        return false;
    if (p->source_number == 0)
        p->publisher_failures += st == TENREC_ESTALE || st == TENREC_EPEER_UNKNOWN ? PULL_TRIES : 1;
    return true;
}

/* The boxes' memory is that of this version from now on. */
static tenrec_status pull_take_memory(struct pull *p, int64_t version, struct piece *piece,
                                      tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < p->n && st == TENREC_OK; i++) {
        const void *tensor = piece_box_at(p->boxes, i)->tensor;
        struct edition *h;
        while (st == TENREC_OK &&
               (h = edition_find(editions_of(p->s->w), edition_overlaps, tensor)) != NULL) {
            if (h->kind == EDITION_IN_PLACE && !h->over)
                st = tenrec_fail(err, TENREC_EBUSY,
                                 "its memory is published as version %lld: withdraw it",
                                 (long long)h->version);
            else
                st = edition_end_wait(h, p->until_ns, err);
            if (st != TENREC_OK)
                piece_box_prefix(p->boxes, i, err);
            edition_drop(h);
        }
    }
    if (st == TENREC_OK)
        return edition_register(p->h, version, piece, p->boxes, p->n, err);
    free(piece);
    return st;
}

/* *ret_final: an error is not that of the source. */
static tenrec_status pull_from_source(struct pull *p, bool *ret_final, tenrec_error *err)
{
    tenrec_status st = p->source_number ? pull_read_refs(p, err) : TENREC_OK;

    *ret_final = st == TENREC_OK;
    if (st != TENREC_OK)
        return st;
    if (p->source_number)
        st = piece_plan_same(&p->plan, p->h->piece, p->n, p->refs, err);
    else
        st = piece_plan_make(&p->plan, p->h->piece, p->n, p->have, p->n_have, err);
    if (st != TENREC_OK)
        return st;
    *ret_final = false;
    return pull_transfer(p, err);
}

static tenrec_status pull_sources(struct pull *p, tenrec_error *err)
{
    char failed[TENREC_NAME_MAX + 1];
    tenrec_error last;
    int64_t version;
    bool final;

    while (pull_from_source(p, &final, err) != TENREC_OK) {
        if (final || !pull_may_go_on(p, err->code))
            return err->code;
        last = *err;
        snprintf(failed, sizeof failed, "%s", p->source);
        if (pull_ask(p, p->h->version, failed, &version, err) != TENREC_OK)
            return tenrec_fail(err, err->code, "%s; before that: %s", err->text, last.text);
    }
    return TENREC_OK;
}

/* Fills the boxes, in the edition's memory. */
static tenrec_status pull_fill_boxes(struct pull *p, int64_t version, tenrec_error *err)
{
    struct piece *piece;
    tenrec_status st = pieces_of_boxes(p->boxes, p->n, PIECE_FILLED, &piece, err);

    if (st == TENREC_OK)
        st = pull_take_memory(p, version, piece, err);
    if (st == TENREC_OK)
        st = pull_sources(p, err);
    if (st == TENREC_OK && p->sums.wrong)
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "tensor '%s' of version %lld has not the checksum that was published",
                         p->sums.wrong->name, (long long)version);
    if (st == TENREC_OK)
        st = handle_ask(p->s, RECORD_DONE, p->h->number,
                        (struct tenrec_value[]){ tenrec_value_int(version) }, 1, p->until_ns, NULL,
                        err);
    return st;
}

static bool edition_is_older(const struct edition *h, const void *arg)
{
    const struct edition *newer = arg;

    return h->of == newer->of && h->whole && !h->over && h->number < newer->number;
}

/* A handle has the version that it has pulled last. */
static void pull_end_older(struct edition *newer)
{
    struct edition *h;

    pthread_mutex_lock(&newer->list->lock);
    newer->whole = true;
    pthread_mutex_unlock(&newer->list->lock);
    while ((h = edition_find(newer->list, edition_is_older, newer)) != NULL) {
        edition_end(h);
        edition_drop(h);
    }
}

static tenrec_status pull_version(struct pull *p, int64_t *ret_version, tenrec_error *err)
{
    tenrec_status st = edition_new(p->s, EDITION_PULLED, &p->h, err);

    if (st != TENREC_OK)
        return st;
    p->publisher_failures = 0;
    st = pull_ask(p, p->version, NULL, ret_version, err);
    if (st == TENREC_OK)
        st = pull_fill_boxes(p, *ret_version, err);
    if (st == TENREC_OK) {
        pull_end_older(p->h);
    } else {
        handle_leave(p->s, p->h);
        edition_end(p->h);
    }
    pull_forget(p);
    edition_drop(p->h);
    return st;
}

/* A version may be replaced, or lost with its holders, while it is read. */
static tenrec_status pull_latest(struct pull *p, int64_t *ret_version, tenrec_error *err)
{
    tenrec_error stale = { 0 };
    tenrec_status st;

    while ((st = pull_version(p, ret_version, err)) == TENREC_ESTALE &&
           p->version == TENREC_WEIGHTS_LATEST) {
        if (*ret_version > p->after)
            p->after = *ret_version;
        stale = *err;
    }
    if (st == TENREC_ETIMEDOUT && stale.code != TENREC_OK)
        *err = stale;
    return st == TENREC_OK ? st : err->code;
}

static tenrec_status pull_check(const struct pull *p, const struct tenrec_weights_options *o,
                                int64_t *ret_digest, tenrec_error *err)
{
    struct piece *piece;
    tenrec_status st = handle_check_options(o, 0, err);

    if (st == TENREC_OK && p->version < 0)
        st = tenrec_fail(err, TENREC_EINVAL,
                         "version %lld: expected TENREC_WEIGHTS_LATEST, or 1 or more",
                         (long long)p->version);
    if (st == TENREC_OK)
        st = pieces_of_boxes(p->boxes, p->n, PIECE_FILLED, &piece, err);
    if (st != TENREC_OK)
        return st;
    *ret_digest = (int64_t)pieces_digest(piece, p->n);
    free(piece);
    return TENREC_OK;
}

tenrec_status tenrec_weights_pull(struct tenrec_weights *s, int64_t version,
                                  const struct tenrec_weights_box *boxes, size_t n,
                                  const struct tenrec_weights_options *options,
                                  int64_t *ret_version, tenrec_error *err)
{
    struct pull *p = memory_new(1, sizeof *p);
    /* Before *ret_version is written, which may be this field. */
    const int64_t after = options && options->size >= sizeof *options ? options->after : 0;
    tenrec_error own, *why = err ? err : &own;
    int64_t got = 0;
    tenrec_status st;

    if (ret_version)
        *ret_version = 0;
    if (!p)
        return memory_fail(err);
    p->s = s;
    p->boxes = boxes;
    p->n = n;
    p->version = version;
    p->after = after;
    st = pull_check(p, options, &p->digest, why);
    if (st == TENREC_OK)
        st = handle_deadline(s, options ? options->timeout_ms : TENREC_TIMEOUT_DEFAULT,
                             &p->until_ns, why);
    if (st == TENREC_OK) {
        editions_sweep(editions_of(s->w));
        st = pull_latest(p, &got, why);
    }
    if (st == TENREC_OK && ret_version)
        *ret_version = got;
    free(p);
    return st;
}
