/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_check.c - what can be said of a batch before it is sent. */
#include "rpc/region/bulk.h"

#include "core/base/memory.h"
#include "rpc/region/regions.h"

#include <stdlib.h>
#include <string.h>

const struct tenrec_bulk *bulk_entry_at(const struct tenrec_bulk *entries, size_t i)
{
    return (const struct tenrec_bulk *)(const void *)((const char *)entries + i * entries->size);
}

/* ---- options ----------------------------------------------------------------------- */

tenrec_status bulk_check_options(const struct tenrec_bulk_options *o, size_t n, tenrec_error *err)
{
    if (o->size < sizeof *o)
        return tenrec_fail(err, TENREC_EINVAL,
                           "bulk options: size is %u, expected %zu (set it to sizeof)", o->size,
                           sizeof *o);
    if (o->flags & ~(uint32_t)TENREC_WAIT_NEXT)
        return tenrec_fail(err, TENREC_EINVAL, "bulk options: unknown flags 0x%x", o->flags);
    if (!o->args && o->n_args > 0)
        return tenrec_fail(err, TENREC_EINVAL, "bulk options: n_args is %zu, but args is NULL",
                           o->n_args);
    if (!o->then && o->n_args > 0)
        return tenrec_fail(err, TENREC_EINVAL, "bulk options: args are given, but no 'then'");
    if (o->then && n == 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "bulk options: 'then' needs an entry, whose owner runs the function");
    return TENREC_OK;
}

/* ---- one entry ------------------------------------------------------------------- */

static tenrec_status bulk_check_bounds(uint64_t offset, uint64_t bytes, uint64_t length,
                                       const char *what, tenrec_error *err)
{
    if (offset <= length && bytes <= length - offset)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL, "%llu bytes at %llu: the %s has %llu",
                       (unsigned long long)bytes, (unsigned long long)offset, what,
                       (unsigned long long)length);
}

static tenrec_status bulk_check_ref(const struct tenrec_region_ref *r, bool writes,
                                    tenrec_error *err)
{
    const uint32_t right = writes ? TENREC_REGION_WRITE : TENREC_REGION_READ;

    if (r->size < sizeof *r)
        return tenrec_fail(err, TENREC_EINVAL, "the reference has the size %u, expected %zu",
                           r->size, sizeof *r);
    if (!memchr(r->owner, '\0', sizeof r->owner))
        return tenrec_fail(err, TENREC_EINVAL, "the reference has no name of an owner");
    if (!(r->rights & right))
        return tenrec_fail(err, TENREC_EPERM, "the region may not be %s",
                           writes ? "written" : "read");
    return TENREC_OK;
}

bool bulk_same_region(const struct tenrec_bulk *a, const struct tenrec_bulk *b)
{
    return memcmp(&a->remote, &b->remote, sizeof a->remote) == 0;
}

/* `before`: the entry before it, of the worker *ret_to; NULL: none. */
static tenrec_status bulk_check_entry(struct tenrec_worker *w, const struct tenrec_bulk *e,
                                      const struct tenrec_bulk *before, uint32_t size,
                                      tenrec_peer *ret_to, tenrec_error *err)
{
    const bool writes = e->direction == TENREC_BULK_WRITE;
    tenrec_status st;

    if (e->size < sizeof *e || e->size != size)
        return tenrec_fail(err, TENREC_EINVAL, "size is %u, expected %zu (set it to sizeof)",
                           e->size, sizeof *e);
    if (e->direction > TENREC_BULK_WRITE)
        return tenrec_fail(err, TENREC_EINVAL, "direction %u is unknown", e->direction);
    st = bulk_check_ref(&e->remote, writes, err);
    if (st == TENREC_OK)
        st = region_check_tensor(e->local, !writes, err);
    if (st == TENREC_OK)
        st = bulk_check_bounds(e->local_offset, e->bytes, tenrec_tensor_bytes(e->local),
                               "local tensor", err);
    if (st == TENREC_OK)
        st = bulk_check_bounds(e->remote_offset, e->bytes, e->remote.length, "region", err);
    if (st != TENREC_OK || (before && bulk_same_region(e, before)))
        return st;
    return peers_find(&w->peers, e->remote.owner, ret_to, err);
}

/* ---- their targets ------------------------------------------------------------------ */

/* Bytes that an entry changes. */
struct bulk_target {
    const struct tenrec_region_ref *region; /* of a write; NULL: local memory */
    uint64_t begin, end;
    size_t entry;
};

static int bulk_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int bulk_compare_regions(const struct tenrec_region_ref *a,
                                const struct tenrec_region_ref *b)
{
    int order;

    if (a == b)
        return 0;
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    order = strcmp(a->owner, b->owner);
    if (order == 0)
        order = bulk_compare(a->life, b->life);
    if (order == 0)
        order = bulk_compare(a->number, b->number);
    return order ? order : bulk_compare(a->generation, b->generation);
}

static int bulk_compare_targets(const void *x, const void *y)
{
    const struct bulk_target *a = x, *b = y;
    const int order = bulk_compare_regions(a->region, b->region);

    return order ? order : bulk_compare(a->begin, b->begin);
}

static struct bulk_target bulk_target_of(const struct tenrec_bulk *e, size_t i)
{
    const bool writes = e->direction == TENREC_BULK_WRITE;
    const uint64_t begin =
        writes ? e->remote_offset
               : (uint64_t)(uintptr_t)tenrec_tensor_data(e->local) + e->local_offset;

    return (struct bulk_target){ writes ? &e->remote : NULL, begin, begin + e->bytes, i };
}

static tenrec_status bulk_check_targets(const struct tenrec_bulk *entries, size_t n,
                                        struct bulk_target *target, tenrec_error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        const struct tenrec_bulk *e = bulk_entry_at(entries, i);
        const struct tenrec_region_ref *last = count ? target[count - 1].region : NULL;
        if (e->bytes == 0)
            continue;
        target[count] = bulk_target_of(e, i);
        if (last && target[count].region && memcmp(last, &e->remote, sizeof *last) == 0)
            target[count].region = last; /* compares at once */
        count++;
    }
    qsort(target, count, sizeof *target, bulk_compare_targets);
    for (size_t i = 1; i < count; i++) {
        const struct bulk_target *a = &target[i - 1], *b = &target[i];
        if (bulk_compare_regions(a->region, b->region) == 0 && a->end > b->begin)
            return tenrec_fail(err, TENREC_EINVAL,
                               "entry %zu: its target overlaps that of entry "
                               "%zu",
                               a->entry > b->entry ? a->entry : b->entry,
                               a->entry > b->entry ? b->entry : a->entry);
    }
    return TENREC_OK;
}

tenrec_status bulk_check(struct tenrec_worker *w, const struct tenrec_bulk *entries, size_t n,
                         bool one, tenrec_peer **ret_to, tenrec_error *err)
{
    struct bulk_target *target = memory_new(n, sizeof *target);
    tenrec_peer *to = memory_new(n, sizeof *to);
    tenrec_status st = target && to ? TENREC_OK : memory_fail(err);

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        const struct tenrec_bulk *before = i > 0 ? bulk_entry_at(entries, i - 1) : NULL;
        to[i] = before ? to[i - 1] : 0;
        st = bulk_check_entry(w, bulk_entry_at(entries, i), before, entries->size, &to[i], err);
        if (st == TENREC_OK && one && to[i] != to[0])
            st = tenrec_fail(err, TENREC_EINVAL,
                             "'then' runs at one owner, and this one is not that of entry 0");
        if (st != TENREC_OK)
            tenrec_error_prefix(err, "entry %zu", i);
    }
    if (st == TENREC_OK)
        st = bulk_check_targets(entries, n, target, err);
    free(target);
    if (st != TENREC_OK) {
        free(to);
        to = NULL;
    }
    *ret_to = to;
    return st;
}
