/* SPDX-License-Identifier: Apache-2.0 */
/* region.c - memory that the program registers, and withdraws. */
#include "rpc/region/regions.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

enum { REVOKE_DEFAULT_MS = 60000 };

/* ---- the table ---------------------------------------------------------------- */

struct region_table *region_table_new(void)
{
    struct region_table *t = memory_new(1, sizeof *t);

    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    clock_cond_init(&t->quiet);
    t->refs = 1;
    return t;
}

void region_table_drop(struct region_table *t)
{
    bool last;

    pthread_mutex_lock(&t->lock);
    last = --t->refs == 0;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    pthread_cond_destroy(&t->quiet);
    pthread_mutex_destroy(&t->lock);
    free(t->writes);
    free(t->slot);
    free(t);
}

void region_unlock_end(struct tenrec_region *r)
{
    struct region_table *t = r->table;
    const bool unused = r->holders == 0 && r->n_pins == 0;

    if (unused)
        t->slot[r->ref.number].region = NULL;
    pthread_mutex_unlock(&t->lock);
    if (!unused)
        return;
    tenrec_tensor_drop(r->memory);
    free(r);
    region_table_drop(t);
}

tenrec_status region_random(void *to, size_t n, tenrec_error *err)
{
    ssize_t got;

    do
        got = getrandom(to, n, 0);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)n)
        return TENREC_OK;
    return tenrec_fail_errno(err, TENREC_EOS, errno, "no random numbers: %s", strerror(errno));
}

/* ---- registering --------------------------------------------------------------- */

tenrec_status region_check_tensor(const struct tenrec_tensor *t, bool writable, tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    const struct tenrec_tensor_desc *d;

    if (!t)
        return tenrec_fail(err, TENREC_EINVAL, "no tensor is given");
    d = tenrec_tensor_desc(t);
    if (d->device.kind != TENREC_CPU && stream_ops_for(d->device, &ops, err) != TENREC_OK)
        return TENREC_EUNSUPPORTED;
    if (!tensor_is_contiguous(d))
        return tenrec_fail(err, TENREC_EINVAL, "the tensor is not contiguous");
    if (writable && (d->flags & TENREC_TENSOR_READ_ONLY))
        return tenrec_fail(err, TENREC_EINVAL, "the tensor is read-only");
    return TENREC_OK;
}

static tenrec_status region_check(const struct tenrec_tensor *t, uint32_t rights, tenrec_error *err)
{
    const uint32_t all = TENREC_REGION_READ | TENREC_REGION_WRITE, known = all | TENREC_REGION_OWN;
    tenrec_status st;

    if (!(rights & all) || (rights & ~known))
        return tenrec_fail(err, TENREC_EINVAL,
                           "rights 0x%x: expected TENREC_REGION_READ, TENREC_REGION_WRITE or both",
                           rights);
    st = region_check_tensor(t, rights & TENREC_REGION_WRITE, err);
    if (st == TENREC_OK && tenrec_tensor_bytes(t) == 0)
        st = tenrec_fail(err, TENREC_EINVAL, "the tensor is empty");
    return st;
}

static struct tenrec_region *region_find(const struct region_table *t,
                                         const struct tenrec_tensor *memory)
{
    for (size_t i = 0; i < t->n; i++) {
        struct tenrec_region *r = t->slot[i].region;
        if (r && !r->own && r->holders > 0 && !r->revoked && r->ref.life == t->life &&
            tenrec_tensor_data(r->memory) == tenrec_tensor_data(memory) &&
            r->ref.length == tenrec_tensor_bytes(memory))
            return r;
    }
    return NULL;
}

/* Gives the region a number. Returns false without memory. */
static bool region_number(struct region_table *t, struct tenrec_region *r)
{
    struct region_slot *grown;
    size_t i = 0;

    while (i < t->n && t->slot[i].region)
        i++;
    if (i == t->n) {
        grown = memory_grow(t->slot, t->n, &t->room, sizeof *t->slot);
        if (!grown)
            return false;
        t->slot = grown;
        t->slot[t->n++] = (struct region_slot){ NULL, 0 };
    }
    t->slot[i].region = r;
    r->ref.number = i;
    r->ref.generation = ++t->slot[i].generation;
    r->ref.life = t->life;
    r->table = t;
    t->refs++;
    return true;
}

static tenrec_status region_make(struct tenrec_worker *w, struct tenrec_tensor *tensor,
                                 uint32_t rights, struct tenrec_region **ret, tenrec_error *err)
{
    struct tenrec_region *r = memory_new(1, sizeof *r);
    tenrec_status st = r ? region_random(r->ref.key, sizeof r->ref.key, err) : memory_fail(err);

    if (st != TENREC_OK) {
        free(r);
        return st;
    }
    r->ref.size = sizeof r->ref;
    r->ref.rights = rights & ~(uint32_t)TENREC_REGION_OWN;
    r->own = rights & TENREC_REGION_OWN;
    r->ref.length = tenrec_tensor_bytes(tensor);
    snprintf(r->ref.owner, sizeof r->ref.owner, "%s", w->self.name);
    r->memory = tensor;
    r->holders = 1;
    *ret = r;
    return TENREC_OK;
}

/* The lock is held. `made` is used if the memory has no region yet. */
static tenrec_status region_register(struct region_table *t, struct tenrec_region *made,
                                     struct tenrec_region **ret, tenrec_error *err)
{
    struct tenrec_region *r = made->own ? NULL : region_find(t, made->memory);

    if (r && r->ref.rights != made->ref.rights)
        return tenrec_fail(err, TENREC_EEXIST, "the memory is a region with the rights 0x%x",
                           r->ref.rights);
    if (r)
        r->holders++;
    else if (region_number(t, made))
        tenrec_tensor_share(made->memory);
    else
        return memory_fail(err);
    *ret = r ? r : made;
    return TENREC_OK;
}

/* The worker is entered. `tensor`: on a device with a stream for copies. */
static tenrec_status region_new(struct tenrec_worker *w, struct tenrec_tensor *tensor,
                                uint32_t rights, struct tenrec_region **ret, tenrec_error *err)
{
    struct region_table *t = *region_table_of(w);
    struct tenrec_region *made;
    tenrec_status st = region_make(w, tensor, rights, &made, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&t->lock);
    st = region_register(t, made, ret, err);
    pthread_mutex_unlock(&t->lock);
    if (*ret != made)
        free(made);
    return st;
}

tenrec_status tenrec_region_new(struct tenrec_worker *w, struct tenrec_tensor *tensor,
                                uint32_t rights, struct tenrec_region **ret, tenrec_error *err)
{
    struct tenrec_tensor *with_stream;
    tenrec_status st;

    *ret = NULL;
    st = region_check(tensor, rights, err);
    if (st == TENREC_OK)
        st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    st = call_begin_into(tensor, &with_stream, err);
    if (st == TENREC_OK) {
        st = region_new(w, with_stream, rights, ret, err);
        call_end_into(tensor, with_stream);
    }
    worker_leave(w);
    return st;
}

void tenrec_region_describe(const struct tenrec_region *r, struct tenrec_region_ref *ret)
{
    *ret = r->ref;
}

uint64_t tenrec_region_pending(const struct tenrec_region *r)
{
    uint64_t n;

    pthread_mutex_lock(&r->table->lock);
    n = r->n_pins;
    pthread_mutex_unlock(&r->table->lock);
    return n;
}

/* ---- withdrawing ----------------------------------------------------------------- */

static uint64_t revoke_until(int64_t ms)
{
    if (ms == TENREC_TIMEOUT_NONE)
        return CLOCK_NEVER;
    return clock_deadline_ms(ms == TENREC_TIMEOUT_DEFAULT ? REVOKE_DEFAULT_MS : (uint64_t)ms);
}

static tenrec_status region_wait(struct tenrec_region *r, int64_t ms, tenrec_error *err)
{
    struct pool *pool = thread_state.pool;
    const uint64_t until = revoke_until(ms);
    tenrec_status st;

    if (pool)
        pool_block_begin(pool);
    pthread_mutex_lock(&r->table->lock);
    st = region_wait_quiet(r, until, err);
    pthread_mutex_unlock(&r->table->lock);
    if (pool)
        pool_block_end(pool);
    return st;
}

tenrec_status tenrec_region_revoke(struct tenrec_region *r, int64_t ms, tenrec_error *err)
{
    uint64_t left;

    if (ms < 0)
        return tenrec_fail(err, TENREC_EINVAL, "a limit of %lld ms: it may not be negative",
                           (long long)ms);
    pthread_mutex_lock(&r->table->lock);
    r->revoked = true;
    left = r->n_pins;
    pthread_mutex_unlock(&r->table->lock);
    if (left == 0)
        return TENREC_OK;
    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "%llu transfers are under way, and an inline function or a callback may "
                           "not wait for their end",
                           (unsigned long long)left);
    return region_wait(r, ms, err);
}

void tenrec_region_drop(struct tenrec_region *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->table->lock);
    r->holders--;
    region_unlock_end(r);
}
