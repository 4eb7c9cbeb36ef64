/* SPDX-License-Identifier: Apache-2.0 */
/* region_pin.c - uses of a region's memory: each is checked when it begins, and a revoke waits for
 * its end. */
#include "rpc/region/region_copy.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/tensor/tensor.h"

#include <stdlib.h>

/* A use of the memory, which lasts as long as the tensors in the message, which are of the bytes.
 */
struct region_pin {
    struct tenrec_region *region;
    struct region_pin *next, **at; /* in the region's list */
    const char *peer;              /* its name; borrowed from the worker's peers */
    uint32_t right;
    size_t parts; /* that are in use; each is a pin of the region */
    size_t n;
    struct region_bytes bytes[];
};

static void region_pin_free(struct region_pin *p)
{
    for (size_t i = 0; p && i < p->n; i++)
        region_bytes_unstage(&p->bytes[i]);
    free(p);
}

static void region_unpin_parts(struct region_pin *p, size_t parts)
{
    struct tenrec_region *r = p->region;
    bool last;

    pthread_mutex_lock(&r->table->lock);
    p->parts -= parts;
    r->n_pins -= parts;
    last = p->parts == 0;
    if (last) {
        *p->at = p->next;
        if (p->next)
            p->next->at = p->at;
    }
    if (r->n_pins == 0)
        pthread_cond_broadcast(&r->table->quiet);
    region_unlock_end(r);
    if (last)
        region_pin_free(p);
}

static void region_unpin(void *arg, void *data)
{
    (void)data;
    region_unpin_parts(arg, 1);
}

bool region_is_pin(const struct tenrec_tensor *t)
{
    return t && tensor_free_arg(t, region_unpin);
}

struct region_bytes *region_pin_copies(const struct tenrec_tensor *t, size_t *ret_n)
{
    struct region_pin *p = tensor_free_arg(t, region_unpin);

    *ret_n = p->n;
    return region_bytes_staged(p->bytes, p->n) ? p->bytes : NULL;
}

/* ---- checks at the owner --------------------------------------------------------- */

static tenrec_status region_stale(struct region_table *t, const char *why, tenrec_error *err)
{
    t->n_stale++;
    return tenrec_fail(err, TENREC_ESTALE, "the region %s", why);
}

/* The lock is held. The numbers and the key are a peer's. */
static tenrec_status region_look_up(struct region_table *t, const struct region_use *use,
                                    struct tenrec_region **ret, tenrec_error *err)
{
    struct tenrec_region *r;

    if (use->life != t->life)
        return region_stale(t, "is one of a former life of its owner", err);
    if (use->number >= t->n)
        return tenrec_fail(err, TENREC_ENOTFOUND, "no region has the number %llu",
                           (unsigned long long)use->number);
    r = t->slot[use->number].region;
    if (use->generation != t->slot[use->number].generation || !r || r->holders == 0 ||
        r->ref.life != t->life)
        return region_stale(t, "was dropped by its owner", err);
    if (((use->key[0] ^ r->ref.key[0]) | (use->key[1] ^ r->ref.key[1])) != 0)
        return tenrec_fail(err, TENREC_EPERM, "the key is not that of the region");
    if (r->revoked)
        return region_stale(t, "was revoked by its owner", err);
    *ret = r;
    return TENREC_OK;
}

static tenrec_status region_check_use(const struct tenrec_region *r, const struct region_use *use,
                                      uint32_t right, tenrec_error *err)
{
    if (!(r->ref.rights & right))
        return tenrec_fail(err, TENREC_EPERM, "the region may not be %s",
                           right == TENREC_REGION_READ ? "read" : "written");
    for (size_t i = 0; i < use->n; i++) {
        const uint64_t offset = use->part[i].offset, bytes = use->part[i].bytes;
        if (bytes == 0 || offset > r->ref.length || bytes > r->ref.length - offset)
            return tenrec_fail(err, TENREC_EINVAL, "%llu bytes at %llu: the region has %llu",
                               (unsigned long long)bytes, (unsigned long long)offset,
                               (unsigned long long)r->ref.length);
    }
    return TENREC_OK;
}

/* Puts the pin into the region that `use` names. */
static tenrec_status region_pin_begin(struct region_table *t, const struct region_use *use,
                                      struct region_pin *p, tenrec_error *err)
{
    struct tenrec_region *r = NULL;
    tenrec_status st;

    pthread_mutex_lock(&t->lock);
    st = region_look_up(t, use, &r, err);
    if (st == TENREC_OK)
        st = region_check_use(r, use, p->right, err);
    if (st == TENREC_OK) {
        p->region = r;
        p->next = r->pins;
        p->at = &r->pins;
        if (p->next)
            p->next->at = &p->next;
        r->pins = p;
        r->n_pins += p->parts = use->n;
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

static tenrec_status region_pin_tensor(struct region_pin *p, size_t i, const struct region_use *use,
                                       struct tenrec_tensor **ret, tenrec_error *err)
{
    struct region_bytes *b = &p->bytes[i];
    tenrec_status st;

    *b = (struct region_bytes){ p->region->memory, use->part[i].offset, use->part[i].bytes, NULL };
    st = region_bytes_stage(b, err);
    return st == TENREC_OK ? region_bytes_new(b, region_unpin, p, ret, err) : st;
}

/* The tensors of all parts, or none. */
static tenrec_status region_pin_tensors(struct region_pin *p, const struct region_use *use,
                                        struct tenrec_tensor **ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    size_t n = 0;

    while (n < use->n && st == TENREC_OK) {
        st = region_pin_tensor(p, n, use, &ret[n], err);
        n += st == TENREC_OK;
    }
    if (st == TENREC_OK)
        return st;
    region_unpin_parts(p, use->n - n);
    while (n > 0)
        tenrec_tensor_drop(ret[--n]);
    return st;
}

tenrec_status region_pin(struct tenrec_worker *w, tenrec_peer from, const struct region_use *use,
                         uint32_t right, struct tenrec_tensor **ret, tenrec_error *err)
{
    struct region_pin *p = memory_new(1, sizeof *p + use->n * sizeof p->bytes[0]);
    tenrec_status st;

    if (!p)
        return memory_fail(err);
    p->n = use->n;
    p->peer = peers_name(&w->peers, from);
    p->right = right;
    st = region_pin_begin(*region_table_of(w), use, p, err);
    if (st != TENREC_OK) {
        region_pin_free(p);
        return st;
    }
    return region_pin_tensors(p, use, ret, err);
}

/* ---- waiting --------------------------------------------------------------------------- */

/* Writes "'worker1' writes, 'worker2' reads": each once, as far as there is room. */
static void region_name_pins(const struct tenrec_region *r, char *text, size_t room)
{
    char one[160];
    size_t n = 0;

    text[0] = '\0';
    for (const struct region_pin *p = r->pins; p; p = p->next) {
        snprintf(one, sizeof one, "'%s' %s", p->peer,
                 p->right == TENREC_REGION_READ ? "reads" : "writes");
        if (strstr(text, one) || n + strlen(one) + 3 > room)
            continue;
        n += (size_t)snprintf(text + n, room - n, "%s%s", n ? ", " : "", one);
    }
}

tenrec_status region_wait_quiet(struct tenrec_region *r, uint64_t until, tenrec_error *err)
{
    char names[256];

    while (r->n_pins > 0 && clock_cond_wait(&r->table->quiet, &r->table->lock, until))
        ;
    if (r->n_pins == 0)
        return TENREC_OK;
    region_name_pins(r, names, sizeof names);
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%zu transfers have not ended: %s", r->n_pins, names);
}
