/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.c - batches of transfers: a request for each entry, and one future. */
#include "rpc/region/bulk.h"

#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "rpc/future/future.h"
#include "rpc/region/regions.h"

#include <stdlib.h>

static void bulk_drop(struct bulk *b)
{
    if (atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&b->lock);
    tenrec_future_drop(b->future);
    tenrec_future_drop(b->visible);
    tenrec_future_drop(b->free);
    tenrec_value_drop(b->then.call);
    free(b);
}

static void bulk_complete(struct tenrec_future *f, const tenrec_error *why)
{
    if (f && why)
        future_complete_error(f, why);
    else if (f)
        future_complete_value(f, NULL);
}

/* Counts down; the last one completes the futures, or calls the function that follows. */
static void bulk_end_one(struct tenrec_worker *w, struct bulk *b)
{
    const tenrec_error *why = NULL;

    if (atomic_fetch_sub(&b->left, 1) != 1)
        return;
    if (b->failed < b->n) {
        tenrec_error_prefix(&b->why, "entry %zu", b->failed);
        why = &b->why;
    }
    bulk_complete(b->visible, why);
    if (why || !b->then.call)
        bulk_complete(b->future, why);
    else if (!tenrec_future_done(b->future)) /* not canceled */
        bulk_then_begin(w, &b->then, b->future);
}

/* Counts down the users of local bytes. */
static void bulk_free_one(struct bulk *b)
{
    if (atomic_fetch_sub(&b->local, 1) == 1)
        bulk_complete(b->free, NULL);
}

static void bulk_fail(struct bulk *b, size_t i, const tenrec_error *why)
{
    pthread_mutex_lock(&b->lock);
    if (i < b->failed) {
        b->failed = i;
        b->why = *why;
    }
    pthread_mutex_unlock(&b->lock);
}

/* The call of an entry has ended. An owner may answer a read without its bytes. */
static void bulk_entry_ended(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why)
{
    struct bulk_entry *e = (struct bulk_entry *)(void *)h;
    struct bulk *b = e->bulk;
    tenrec_error without;

    if (!why && e->reads && !atomic_load(&e->arrived)) {
        tenrec_fail(&without, TENREC_EPROTOCOL, "the answer has not the bytes that were asked for");
        why = &without;
    }
    if (why)
        bulk_fail(b, (size_t)(e - b->entry), why);
    bulk_end_one(w, b);
    bulk_drop(b);
}

/* ---- the bytes of an entry -------------------------------------------------------- */

static void bulk_bytes_drop(void *arg, void *data)
{
    struct bulk_entry *e = arg;

    (void)data;
    tenrec_tensor_drop(e->local);
    bulk_free_one(e->bulk);
    bulk_drop(e->bulk);
}

void bulk_arrived(struct tenrec_tensor *into)
{
    struct bulk_entry *e = tensor_free_arg(into, bulk_bytes_drop);

    if (e)
        atomic_store(&e->arrived, true);
}

static tenrec_status bulk_bytes_new(struct bulk_entry *e, const struct tenrec_bulk *of,
                                    struct tenrec_tensor **ret, tenrec_error *err)
{
    char *data = (char *)tenrec_tensor_data(of->local) + of->local_offset;
    tenrec_status st = region_bytes_new(data, of->bytes, bulk_bytes_drop, e, ret, err);

    if (st != TENREC_OK)
        return st;
    e->local = tenrec_tensor_share(of->local);
    atomic_fetch_add(&e->bulk->refs, 1);
    atomic_fetch_add(&e->bulk->local, 1);
    return TENREC_OK;
}

/* ---- sending ------------------------------------------------------------------------ */

/* Sends a request (takes bytes always). */
static tenrec_status bulk_send(struct tenrec_worker *w, struct bulk_entry *e,
                               const struct tenrec_bulk *of, struct call_spec *spec,
                               struct tenrec_tensor *bytes, tenrec_error *err)
{
    const struct tenrec_region_ref *r = &of->remote;
    const struct region_use use = { r->life,           r->number,
                                    r->generation,     { r->key[0], r->key[1] },
                                    of->remote_offset, of->bytes };
    struct tenrec_future *f;
    struct tenrec_msg *msg;
    tenrec_status st = e->reads ? region_message_new(TENREC_MSG_BULK_READ, &use, NULL, &msg, err)
                                : region_message_new(TENREC_MSG_BULK_WRITE, &use, bytes, &msg, err);

    if (st == TENREC_OK) {
        spec->into = e->reads ? bytes : NULL;
        spec->hook = &e->hook;
        st = call_send(w, spec, msg, &f, err);
        if (st == TENREC_OK)
            tenrec_future_drop(f);
        if (e->reads)
            tenrec_tensor_drop(bytes);
    } else {
        tenrec_tensor_drop(bytes);
    }
    return st;
}

static void bulk_begin_entry(struct tenrec_worker *w, struct bulk *b, size_t i,
                             const struct tenrec_bulk *of, struct call_spec spec)
{
    struct bulk_entry *e = &b->entry[i];
    struct tenrec_tensor *bytes;
    tenrec_error why;
    tenrec_status st;

    e->bulk = b;
    e->hook.done = bulk_entry_ended;
    e->reads = of->direction == TENREC_BULK_READ;
    spec.function = spec.op = e->reads ? "bulk_read" : "bulk_write";
    atomic_fetch_add(&b->refs, 1);
    atomic_fetch_add(&b->left, 1);
    st = bulk_bytes_new(e, of, &bytes, &why);
    if (st == TENREC_OK)
        st = bulk_send(w, e, of, &spec, bytes, &why);
    if (st != TENREC_OK)
        bulk_entry_ended(&e->hook, w, &why);
}

/* Makes the futures that the program asks for. Returns false without memory. */
static bool bulk_futures(struct bulk *b, struct tenrec_worker *w,
                         const struct tenrec_bulk_options *o, tenrec_peer to)
{
    b->future = future_make_of(w, to);
    if (o->ret_visible)
        b->visible = future_make_of(w, to);
    if (o->ret_free) /* a peer in this process may use the bytes after `w` is gone */
        b->free = future_make();
    return b->future && (b->visible || !o->ret_visible) && (b->free || !o->ret_free);
}

static tenrec_status bulk_new(struct tenrec_worker *w, size_t n,
                              const struct tenrec_bulk_options *o, const struct call_spec *spec,
                              struct bulk **ret, tenrec_error *err)
{
    struct bulk *b = n > (SIZE_MAX - sizeof *b) / sizeof *b->entry
                         ? NULL
                         : memory_new(1, sizeof *b + n * sizeof *b->entry);
    tenrec_status st = TENREC_OK;

    if (!b)
        return memory_fail(err);
    pthread_mutex_init(&b->lock, NULL);
    atomic_init(&b->refs, 1);
    atomic_init(&b->left, 1);
    atomic_init(&b->local, 1);
    b->failed = b->n = n;
    b->then.to = spec->to;
    b->then.deadline_ns = spec->deadline_ns;
    if (!bulk_futures(b, w, o, spec->to))
        st = memory_fail(err);
    else if (o->then)
        st = bulk_then_keep(&b->then, o, err);
    if (st == TENREC_OK)
        *ret = b;
    else
        bulk_drop(b);
    return st;
}

/* Shares the futures with the program; NULL: gives none. */
static void bulk_give_futures(const struct bulk *b, const struct tenrec_bulk_options *o,
                              struct tenrec_future **ret)
{
    *ret = b ? tenrec_future_share(b->future) : NULL;
    if (o->ret_visible)
        *o->ret_visible = b ? tenrec_future_share(b->visible) : NULL;
    if (o->ret_free)
        *o->ret_free = b ? tenrec_future_share(b->free) : NULL;
}

/* The worker is entered. */
static tenrec_status bulk_begin(struct tenrec_worker *w, const struct tenrec_bulk *entries,
                                size_t n, const struct tenrec_bulk_options *o,
                                struct tenrec_future **ret, tenrec_error *err)
{
    struct call_spec spec = { .to = w->self.id };
    tenrec_peer *to = NULL;
    struct bulk *b = NULL;
    tenrec_status st = call_begin_now(w, &spec, o->timeout_ms, err);

    if (st == TENREC_OK && n > 0)
        st = bulk_check(w, entries, n, o->then != NULL, &to, err);
    if (st == TENREC_OK && n > 0)
        spec.to = to[0];
    if (st == TENREC_OK)
        st = bulk_new(w, n, o, &spec, &b, err);
    if (st != TENREC_OK) {
        free(to);
        return st;
    }
    bulk_give_futures(b, o, ret);
    for (size_t i = 0; i < n; i++) {
        spec.to = to[i];
        if (bulk_entry_at(entries, i)->bytes > 0)
            bulk_begin_entry(w, b, i, bulk_entry_at(entries, i), spec);
    }
    free(to);
    bulk_end_one(w, b);
    bulk_free_one(b);
    bulk_drop(b);
    return TENREC_OK;
}

tenrec_status tenrec_bulk_async(struct tenrec_worker *w, const struct tenrec_bulk *entries,
                                size_t n, const struct tenrec_bulk_options *options,
                                struct tenrec_future **ret, tenrec_error *err)
{
    static const struct tenrec_bulk_options defaults = { .size = sizeof defaults };
    const struct tenrec_bulk_options *o = options ? options : &defaults;
    tenrec_error own, *why = err ? err : &own;
    tenrec_status st;

    *ret = NULL;
    if (o->size >= sizeof *o)
        bulk_give_futures(NULL, o, ret);
    if (!entries && n > 0)
        return tenrec_fail(why, TENREC_EINVAL, "n is %zu, but entries is NULL", n);
    st = bulk_check_options(o, n, why);
    if (st == TENREC_OK)
        st = worker_enter(w, why);
    if (st != TENREC_OK)
        return st;
    st = bulk_begin(w, entries, n, o, ret, why);
    worker_leave(w);
    return st;
}
