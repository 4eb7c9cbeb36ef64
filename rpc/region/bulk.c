/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.c - batches of transfers: a request for each entry, and one future. */
#include "rpc/region/regions.h"

#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/future/future.h"

#include <stdlib.h>

struct bulk_entry {
    struct call_hook hook; /* first */
    struct bulk *bulk;
    struct tenrec_tensor *local; /* shared by the bytes of the entry */
    bool reads;
    atomic_bool arrived; /* the bytes of a read are there */
};

/* Lives until the last entry has ended, and no message has bytes of it. */
struct bulk {
    atomic_size_t refs; /* of what is sent, of the bytes of each entry, and of the sending thread */
    atomic_size_t left; /* entries that have not ended, and the sending thread */
    struct tenrec_future *future; /* shared */
    pthread_mutex_t lock;         /* guards why and failed */
    tenrec_error why;
    size_t failed; /* the first entry that failed; n: none */
    size_t n;
    struct bulk_entry entry[];
};

static void bulk_drop(struct bulk *b)
{
    if (atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&b->lock);
    tenrec_future_drop(b->future);
    free(b);
}

/* Counts down; the last completes the future. */
static void bulk_end_one(struct bulk *b)
{
    if (atomic_fetch_sub(&b->left, 1) != 1)
        return;
    if (b->failed == b->n) {
        future_complete_value(b->future, NULL);
        return;
    }
    tenrec_error_prefix(&b->why, "entry %zu", b->failed);
    future_complete_error(b->future, &b->why);
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

    (void)w;
    if (!why && e->reads && !atomic_load(&e->arrived)) {
        tenrec_fail(&without, TENREC_EPROTOCOL, "the answer has not the bytes that were asked for");
        why = &without;
    }
    if (why)
        bulk_fail(b, (size_t)(e - b->entry), why);
    bulk_end_one(b);
    bulk_drop(b);
}

/* ---- the bytes of an entry -------------------------------------------------------- */

static void bulk_bytes_drop(void *arg, void *data)
{
    struct bulk_entry *e = arg;

    (void)data;
    tenrec_tensor_drop(e->local);
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

static struct bulk *bulk_new(size_t n)
{
    struct bulk *b = n > (SIZE_MAX - sizeof *b) / sizeof *b->entry
                         ? NULL
                         : memory_new(1, sizeof *b + n * sizeof *b->entry);

    if (!b)
        return NULL;
    b->future = future_make();
    if (!b->future) {
        free(b);
        return NULL;
    }
    pthread_mutex_init(&b->lock, NULL);
    atomic_init(&b->refs, 1);
    atomic_init(&b->left, 1);
    b->failed = b->n = n;
    return b;
}

/* The worker is entered. */
static tenrec_status bulk_begin(struct tenrec_worker *w, const struct tenrec_bulk *entries,
                                size_t n, int64_t timeout_ms, struct tenrec_future **ret,
                                tenrec_error *err)
{
    struct call_spec spec = { .to = -1 };
    tenrec_peer *to = NULL;
    struct bulk *b;
    tenrec_status st = call_begin_now(w, &spec, timeout_ms, err);

    if (st == TENREC_OK && n > 0)
        st = bulk_check(w, entries, n, &to, err);
    if (st != TENREC_OK)
        return st;
    b = bulk_new(n);
    if (!b) {
        free(to);
        return memory_fail(err);
    }
    *ret = tenrec_future_share(b->future);
    for (size_t i = 0; i < n; i++) {
        spec.to = to[i];
        if (bulk_entry_at(entries, i)->bytes > 0)
            bulk_begin_entry(w, b, i, bulk_entry_at(entries, i), spec);
    }
    free(to);
    bulk_end_one(b);
    bulk_drop(b);
    return TENREC_OK;
}

tenrec_status tenrec_bulk_async(struct tenrec_worker *w, const struct tenrec_bulk *entries,
                                size_t n, const struct tenrec_bulk_options *options,
                                struct tenrec_future **ret, tenrec_error *err)
{
    tenrec_error own, *why = err ? err : &own;
    tenrec_status st;

    *ret = NULL;
    if (!entries && n > 0)
        return tenrec_fail(why, TENREC_EINVAL, "n is %zu, but entries is NULL", n);
    if (options && options->size < sizeof *options)
        return tenrec_fail(why, TENREC_EINVAL,
                           "bulk options: size is %u, expected %zu (set it to sizeof)",
                           options->size, sizeof *options);
    if (options && options->flags)
        return tenrec_fail(why, TENREC_EINVAL, "bulk options: unknown flags 0x%x", options->flags);
    st = worker_enter(w, why);
    if (st != TENREC_OK)
        return st;
    st =
        bulk_begin(w, entries, n, options ? options->timeout_ms : TENREC_TIMEOUT_DEFAULT, ret, why);
    worker_leave(w);
    return st;
}
