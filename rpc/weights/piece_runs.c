/* SPDX-License-Identifier: Apache-2.0 */
/* piece_runs.c - plans: which bytes of which regions fill the wanted boxes. */
#include "rpc/weights/piece.h"

#include "core/base/memory.h"
#include "core/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1 << 22 };

void piece_plan_finish(struct piece_plan *p)
{
    free(p->run);
    *p = (struct piece_plan){ 0 };
}

static tenrec_status plan_add(struct piece_plan *p, const struct piece_run *run, tenrec_error *err)
{
    struct piece_run *grown;

    if (p->n == RUNS_MAX)
        return tenrec_fail(err, TENREC_ETOOBIG,
                           "the boxes are in more than %d runs of bytes: want rows that are longer",
                           RUNS_MAX);
    grown = memory_grow(p->run, p->n, &p->room, sizeof *run);
    if (!grown)
        return memory_fail(err);
    p->run = grown;
    p->run[p->n++] = *run;
    return TENREC_OK;
}

/* ---- what two boxes share ----------------------------------------------------------- */

/* The shared box, and how many of its first dimensions count runs. */
struct overlap {
    int64_t low[TENREC_MAX_DIMS], extent[TENREC_MAX_DIMS];
    uint32_t outer;
    uint64_t bytes; /* of a run */
};

/* Returns false if they share nothing. */
static bool overlap_find(const struct piece *a, const struct piece *b, struct overlap *ret)
{
    uint32_t d;

    for (d = 0; d < a->ndim; d++) {
        const int64_t ends[2] = { a->at[d] + a->extent[d], b->at[d] + b->extent[d] };
        ret->low[d] = a->at[d] > b->at[d] ? a->at[d] : b->at[d];
        ret->extent[d] = (ends[0] < ends[1] ? ends[0] : ends[1]) - ret->low[d];
        if (ret->extent[d] <= 0)
            return false;
    }
    ret->bytes = dtype_bytes(a->dtype);
    while (d > 0 && ret->extent[d - 1] == a->extent[d - 1] &&
           ret->extent[d - 1] == b->extent[d - 1])
        ret->bytes *= (uint64_t)ret->extent[--d];
    if (d > 0) /* a part of this dimension is side by side, too */
        ret->bytes *= (uint64_t)ret->extent[--d];
    ret->outer = d;
    return true;
}

/* Where the run with this index begins in the memory of `p`. */
static uint64_t overlap_offset(const struct overlap *o, const int64_t *i, const struct piece *p)
{
    uint64_t at = 0;

    for (uint32_t d = 0; d < p->ndim; d++)
        at = at * (uint64_t)p->extent[d] +
             (uint64_t)(o->low[d] + (d < o->outer ? i[d] : 0) - p->at[d]);
    return at * dtype_bytes(p->dtype);
}

static tenrec_status plan_add_overlap(struct piece_plan *plan, const struct overlap *o, size_t want,
                                      const struct piece *to, const struct piece *from,
                                      tenrec_error *err)
{
    int64_t i[TENREC_MAX_DIMS] = { 0 };
    tenrec_status st = TENREC_OK;
    uint32_t d = 1;

    while (d > 0 && st == TENREC_OK) {
        const struct piece_run run = { want, overlap_offset(o, i, to), o->bytes, &from->ref,
                                       overlap_offset(o, i, from) };
        st = plan_add(plan, &run, err);
        for (d = o->outer; d > 0 && ++i[d - 1] == o->extent[d - 1]; d--)
            i[d - 1] = 0;
    }
    return st;
}

/* ---- plans -------------------------------------------------------------------------- */

static tenrec_status plan_compare(const struct piece *want, const struct piece *have,
                                  tenrec_error *err)
{
    if (memcmp(&want->dtype, &have->dtype, sizeof want->dtype) != 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor '%s' is published as %s, and the box has another type",
                           want->name, tenrec_dtype_name(have->dtype));
    if (want->ndim != have->ndim ||
        memcmp(want->shape, have->shape, want->ndim * sizeof *want->shape) != 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor '%s' is published with %u dimensions and another shape than the "
                           "box names",
                           want->name, have->ndim);
    return TENREC_OK;
}

static int run_compare(const void *x, const void *y)
{
    const struct piece_run *a = x, *b = y;

    return (a->to > b->to) - (a->to < b->to);
}

/* Sorts the runs from `first` on, which fill one box, and cuts what an earlier run fills: several
 * publishers may have the same elements. */
static tenrec_status plan_close_want(struct piece_plan *p, size_t first, const struct piece *want,
                                     tenrec_error *err)
{
    uint64_t filled = 0;
    size_t n = first;

    qsort(p->run + first, p->n - first, sizeof *p->run, run_compare);
    for (size_t i = first; i < p->n; i++) {
        struct piece_run run = p->run[i];
        const uint64_t cut = run.to < filled ? filled - run.to : 0;
        if (run.to > filled)
            break;
        if (cut >= run.bytes)
            continue;
        run.to += cut, run.from += cut, run.bytes -= cut;
        filled += run.bytes;
        p->run[n++] = run;
    }
    p->n = n;
    if (filled == want->bytes)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL,
                       "tensor '%s': no publisher has the element at byte %llu of the box",
                       want->name, (unsigned long long)filled);
}

static tenrec_status plan_add_want(struct piece_plan *p, size_t want, const struct piece *to,
                                   const struct piece *have, size_t n_have, tenrec_error *err)
{
    const size_t first = p->n;
    tenrec_status st = TENREC_OK;
    struct overlap o;
    bool found = false;

    for (size_t i = 0; i < n_have && st == TENREC_OK; i++) {
        if (strcmp(to->name, have[i].name) != 0)
            continue;
        found = true;
        st = plan_compare(to, &have[i], err);
        if (st == TENREC_OK && overlap_find(to, &have[i], &o))
            st = plan_add_overlap(p, &o, want, to, &have[i], err);
    }
    if (!found)
        return tenrec_fail(err, TENREC_ENOTFOUND, "no publisher has a tensor '%s'", to->name);
    return st == TENREC_OK ? plan_close_want(p, first, to, err) : st;
}

tenrec_status piece_plan_make(struct piece_plan *p, const struct piece *want, size_t n_wants,
                              const struct piece *have, size_t n_have, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    piece_plan_finish(p);
    for (size_t i = 0; i < n_wants && st == TENREC_OK; i++)
        st = plan_add_want(p, i, &want[i], have, n_have, err);
    return st;
}

tenrec_status piece_plan_same(struct piece_plan *p, const struct piece *want, size_t n_wants,
                              const struct tenrec_region_ref *ref, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    piece_plan_finish(p);
    for (size_t i = 0; i < n_wants && st == TENREC_OK; i++) {
        const struct piece_run run = { i, 0, want[i].bytes, &ref[i], 0 };
        if (run.bytes > 0)
            st = plan_add(p, &run, err);
    }
    return st;
}
