/* SPDX-License-Identifier: Apache-2.0 */
/* pull_window.c - the buckets of a pull. Several are under way, so that the time to a source and
 * back passes once, and another reader passes on what it has while it waits for the rest. */
#include "rpc/weights/pull.h"

#include "core/base/clock.h"

#include <string.h>

enum {
    BUCKETS = 64, /* of a pull: the last reader of a chain ends a bucket later for each before it */
};
#define BUCKET_LEAST ((uint64_t)1 << 20)
#define BUCKET_MOST ((uint64_t)64 << 20)
#define FLIGHT_BYTES ((uint64_t)8 << 20) /* unless these are less than two buckets */

/* ---- a bucket ----------------------------------------------------------------------- */

/* Takes the next runs, up to `most` bytes. *ret_n: the entries in p->entry, whose local tensors are
 * to be dropped, also after an error. */
static tenrec_status bucket_fill(struct pull *p, uint64_t most, size_t *ret_n, uint64_t *ret_bytes,
                                 tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret_bytes = 0;
    for (*ret_n = 0; *ret_n < PULL_RUNS && p->run < p->plan.n && *ret_bytes < most; ++*ret_n) {
        const struct piece_run *run = &p->plan.run[p->run];
        struct tenrec_bulk *e = &p->entry[*ret_n];
        uint64_t bytes = run->bytes - p->done;
        if (bytes > most - *ret_bytes)
            bytes = most - *ret_bytes;
        *e = (struct tenrec_bulk){ .size = sizeof *e,
                                   .direction = TENREC_BULK_READ,
                                   .remote = *run->ref,
                                   .remote_offset = run->from + p->done,
                                   .bytes = bytes };
        st = edition_bytes_new(p->h, run->want, run->to + p->done, bytes, &e->local, err);
        if (st != TENREC_OK)
            return st;
        *ret_bytes += bytes;
        p->done += bytes;
        if (p->done == run->bytes) {
            p->run++;
            p->done = 0;
        }
    }
    return TENREC_OK;
}

static tenrec_status bucket_begin(struct pull *p, uint64_t most, tenrec_error *err)
{
    const struct tenrec_bulk_options o = { .size = sizeof o,
                                           .timeout_ms = handle_left_ms(p->until_ns) };
    struct pull_window *w = &p->window;
    uint64_t bytes;
    size_t n;
    tenrec_status st = bucket_fill(p, most, &n, &bytes, err);

    if (st == TENREC_OK)
        st = tenrec_bulk_async(p->s->w, p->entry, n, &o, &w->bucket[w->n].f, err);
    if (st == TENREC_OK) {
        w->asked += bytes;
        w->bucket[w->n++].end = w->asked;
    }
    while (n > 0)
        tenrec_tensor_drop(p->entry[--n].local);
    return st;
}

/* ---- the window --------------------------------------------------------------------- */

static void window_open(struct pull *p)
{
    struct pull_window *w = &p->window;
    uint64_t bytes = 0, at = 0;

    for (size_t i = 0; i < p->h->n; i++)
        bytes += p->h->piece[i].bytes;
    bytes /= BUCKETS;
    *w = (struct pull_window){ .bucket_bytes = bytes < BUCKET_LEAST  ? BUCKET_LEAST
                                               : bytes > BUCKET_MOST ? BUCKET_MOST
                                                                     : bytes,
                               .has = p->source_number ? 0 : UINT64_MAX,
                               .asked = p->h->arrived };
    /* A former source may have given some. */
    for (p->run = 0; p->run < p->plan.n && at + p->plan.run[p->run].bytes <= w->asked; p->run++)
        at += p->plan.run[p->run].bytes;
    p->done = w->asked - at;
}

static void window_close(struct pull_window *w)
{
    if (w->more)
        tenrec_future_cancel(w->more);
    tenrec_future_drop(w->more);
    for (size_t i = 0; i < w->n; i++) {
        tenrec_future_cancel(w->bucket[i].f);
        tenrec_future_drop(w->bucket[i].f);
    }
    w->more = NULL;
    w->n = 0;
}

static uint64_t window_left(const struct pull *p)
{
    uint64_t bytes = 0;

    for (size_t i = p->run; i < p->plan.n && bytes < p->window.bucket_bytes; i++)
        bytes += p->plan.run[i].bytes - (i == p->run ? p->done : 0);
    return bytes < p->window.bucket_bytes ? bytes : p->window.bucket_bytes;
}

/* Begins what there is room for, and asks the source for more when it has less. */
static tenrec_status window_fill(struct pull *p, tenrec_error *err)
{
    struct pull_window *w = &p->window;
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && w->n < PULL_FLIGHT && p->run < p->plan.n &&
           (w->n < 2 || w->asked - p->h->arrived < FLIGHT_BYTES)) {
        const uint64_t next = window_left(p);
        if (w->has >= w->asked + next)
            st = bucket_begin(p, next, err);
        else if (!w->more)
            st = pull_ask_source(p, w->asked + next, false, &w->more, err);
        else
            break;
    }
    return st;
}

/* The source has answered how many bytes it has. */
static tenrec_status window_take_more(struct pull *p, tenrec_error *err)
{
    struct pull_window *w = &p->window;
    struct tenrec_future *f = w->more;
    tenrec_status st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);
    const struct tenrec_value *v = tenrec_future_value(f);

    w->more = NULL;
    if (st == TENREC_OK &&
        (v->type != TENREC_VALUE_INT || v->u.integer < 0 || (uint64_t)v->u.integer <= w->has))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "'%s' has answered without more bytes", p->source);
    if (st == TENREC_OK)
        w->has = (uint64_t)v->u.integer;
    tenrec_future_drop(f);
    return st;
}

static tenrec_status window_take_bucket(struct pull *p, tenrec_error *err)
{
    struct pull_window *w = &p->window;
    const struct pull_bucket b = w->bucket[0];
    tenrec_status st = tenrec_future_wait(b.f, TENREC_TIMEOUT_NONE, err);

    memmove(w->bucket, w->bucket + 1, --w->n * sizeof *w->bucket);
    tenrec_future_drop(b.f);
    if (st != TENREC_OK)
        return st;
    edition_arrived(p->h, b.end);
    st = window_fill(p, err); /* before this thread computes */
    return st == TENREC_OK ? sums_add(&p->sums, b.end, err) : st;
}

/* Waits for the next of both. */
static tenrec_status window_wait(struct pull *p, tenrec_error *err)
{
    struct pull_window *w = &p->window;
    struct tenrec_future *f[2];
    size_t n = 0, i;
    tenrec_status st;

    if (w->n > 0)
        f[n++] = w->bucket[0].f;
    if (w->more)
        f[n++] = w->more;
    st = tenrec_future_wait_any(f, n, handle_left_ms(pull_before_stall(p)), &i, err);
    if (st == TENREC_ETIMEDOUT)
        return tenrec_fail(err, st, "%s%s has given nothing for a while: it is stopped or slow",
                           p->source_number ? p->source : "a publisher",
                           p->source_number ? ", a reader," : "");
    if (st != TENREC_OK)
        return st;
    return f[i] == w->more ? window_take_more(p, err) : window_take_bucket(p, err);
}

tenrec_status pull_transfer(struct pull *p, tenrec_error *err)
{
    struct pull_window *w = &p->window;
    tenrec_status st = sums_make(&p->sums, p, err);

    window_open(p);
    if (st == TENREC_OK)
        st = sums_add(&p->sums, w->asked, err);
    if (st == TENREC_OK)
        st = window_fill(p, err);
    while (st == TENREC_OK && (w->n > 0 || w->more)) {
        st = window_wait(p, err);
        if (st == TENREC_OK)
            st = window_fill(p, err);
    }
    window_close(w);
    return st;
}
