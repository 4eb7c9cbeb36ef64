/* SPDX-License-Identifier: Apache-2.0 */
/* bulk.c - batches of transfers: requests for their entries, and one future. */
#include "rpc/region/bulk.h"

#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "rpc/call/service.h"
#include "rpc/future/future.h"
#include "rpc/region/regions.h"

#include <stdlib.h>

#define REQUEST_BYTES ((uint64_t)1 << 20) /* of entries that share a message */

void bulk_drop(struct bulk *b)
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

void bulk_complete(struct tenrec_future *f, const tenrec_error *why)
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

static void bulk_fail(struct bulk *b, size_t i, const tenrec_error *why)
{
    pthread_mutex_lock(&b->lock);
    if (i < b->failed) {
        b->failed = i;
        b->why = *why;
    }
    pthread_mutex_unlock(&b->lock);
}

/* The call of a request has ended. An owner may answer a read without its bytes. */
void bulk_request_ended(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why)
{
    struct bulk_request *r = (struct bulk_request *)(void *)h;
    struct bulk *b = r->bulk;
    tenrec_error without;

    if (!why && r->reads && !atomic_load(&r->arrived)) {
        tenrec_fail(&without, TENREC_EPROTOCOL, "the answer has not the bytes that were asked for");
        why = &without;
    }
    if (why)
        bulk_fail(b, (size_t)(r->entry - b->entry), why);
    bulk_end_one(w, b);
    bulk_drop(b);
}

/* ---- sending ------------------------------------------------------------------------ */

/* Sends a request with the bytes of a write, or the first of a read (takes them always). */
static tenrec_status bulk_call(struct tenrec_worker *w, struct bulk_request *r,
                               const struct region_use *use, struct call_spec *spec,
                               struct tenrec_tensor **bytes, tenrec_error *err)
{
    size_t n = r->reads ? 1 : r->n;
    struct tenrec_future *f;
    struct tenrec_msg *msg;
    tenrec_status st = r->reads ? region_message_new(TENREC_MSG_BULK_READ, use, NULL, &msg, err)
                                : region_message_new(TENREC_MSG_BULK_WRITE, use, bytes, &msg, err);

    if (st == TENREC_OK) {
        spec->into = r->reads ? bytes[0] : NULL;
        spec->hook = &r->hook;
        n = r->reads ? 1 : 0; /* the message has those of a write */
        if (!r->reads && region_bytes_staged(r->entry, r->n)) {
            bulk_copy_out(w, r, spec, msg);
            return TENREC_OK;
        }
        st = call_send(w, spec, msg, &f, err);
        if (st == TENREC_OK)
            tenrec_future_drop(f);
    }
    while (n > 0)
        tenrec_tensor_drop(bytes[--n]);
    return st;
}

/* Fills its entries, which are those from `of` on, and *use. errors: ENOMEM, the driver's */
static tenrec_status bulk_request_fill(struct bulk_request *r, const struct tenrec_bulk *of,
                                       struct region_use *use, tenrec_error *err)
{
    const struct tenrec_region_ref *ref = &of->remote;
    tenrec_status st = TENREC_OK;

    *use = (struct region_use){ .life = ref->life,
                                .number = ref->number,
                                .generation = ref->generation,
                                .key = { ref->key[0], ref->key[1] },
                                .n = r->n };
    for (size_t i = 0; i < r->n && st == TENREC_OK; i++) {
        const struct tenrec_bulk *e = bulk_entry_at(of, i);
        st = bulk_entry_fill(&r->entry[i], e, err);
        use->part[i].offset = e->remote_offset;
        use->part[i].bytes = e->bytes;
    }
    return st;
}

static void bulk_begin_request(struct tenrec_worker *w, struct bulk_request *r,
                               const struct tenrec_bulk *of, struct call_spec spec)
{
    struct tenrec_tensor *bytes[REGION_PARTS_MAX];
    struct region_use use;
    tenrec_error why;
    tenrec_status st;

    r->hook.done = bulk_request_ended;
    r->reads = of->direction == TENREC_BULK_READ;
    atomic_init(&r->used, 1); /* this thread, too */
    spec.function = spec.op = r->reads ? "bulk_read" : "bulk_write";
    atomic_fetch_add(&r->bulk->refs, 2);
    atomic_fetch_add(&r->bulk->left, 1);
    atomic_fetch_add(&r->bulk->local, 1);
    st = bulk_request_fill(r, of, &use, &why);
    if (st == TENREC_OK)
        st = bulk_bytes_of(r, r->reads ? 1 : r->n, bytes, &why);
    if (st == TENREC_OK)
        st = bulk_call(w, r, &use, &spec, bytes, &why);
    if (st != TENREC_OK)
        bulk_request_ended(&r->hook, w, &why);
    bulk_bytes_end(r);
}

/* Returns how many entries from the first on one message asks for: small ones, that follow each
 * other in the list. */
static size_t bulk_request_length(const struct tenrec_bulk *first, size_t n)
{
    uint64_t bytes = first->bytes;
    size_t i = 1;

    for (; i < n && i < REGION_PARTS_MAX; i++) {
        const struct tenrec_bulk *e = bulk_entry_at(first, i);
        if (e->bytes == 0 || e->bytes > REQUEST_BYTES || (bytes += e->bytes) > REQUEST_BYTES ||
            e->direction != first->direction || !bulk_same_region(e, first))
            break;
    }
    return i;
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
    const size_t each = sizeof(struct region_bytes) + sizeof(struct bulk_request);
    struct bulk *b = n > (SIZE_MAX - sizeof *b) / each ? NULL : memory_new(1, sizeof *b + n * each);
    tenrec_status st = TENREC_OK;

    if (!b)
        return memory_fail(err);
    b->request = (struct bulk_request *)(void *)(b->entry + n);
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

static void bulk_begin_requests(struct tenrec_worker *w, struct bulk *b,
                                const struct tenrec_bulk *entries, const tenrec_peer *to,
                                bool polled, struct call_spec *spec)
{
    for (size_t i = 0, k; i < b->n; i += k) {
        const struct tenrec_bulk *first = bulk_entry_at(entries, i);
        struct bulk_request *r = &b->request[i];
        k = first->bytes == 0 ? 1 : bulk_request_length(first, b->n - i);
        spec->to = to[i];
        spec->polled = polled && to[i] == to[0]; /* the peer of the futures */
        r->bulk = b;
        r->entry = &b->entry[i];
        r->n = k;
        if (first->bytes > 0)
            bulk_begin_request(w, r, first, *spec);
    }
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
    bulk_begin_requests(w, b, entries, to, o->flags & TENREC_WAIT_NEXT, &spec);
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
