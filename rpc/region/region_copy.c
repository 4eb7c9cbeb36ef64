/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/region/region_copy.h"

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

enum { COPY_THREADS = 4, COPIES_MAX = 1 << 20 };

/* ---- bytes -------------------------------------------------------------------------- */

static bool bytes_on_device(const struct region_bytes *b)
{
    return tenrec_tensor_desc(b->of)->device.kind != TENREC_CPU;
}

static char *bytes_data(const struct region_bytes *b)
{
    return (char *)tenrec_tensor_data(b->of) + b->offset;
}

tenrec_status region_bytes_stage(struct region_bytes *b, tenrec_error *err)
{
    const int64_t n = (int64_t)b->bytes;

    b->host = NULL;
    if (!bytes_on_device(b))
        return TENREC_OK;
    return tenrec_tensor_new(TENREC_UINT8, 1, &n, &b->host, err);
}

void region_bytes_unstage(struct region_bytes *b)
{
    tenrec_tensor_drop(b->host);
    b->host = NULL;
}

bool region_bytes_staged(const struct region_bytes *b, size_t n)
{
    while (n > 0)
        if (b[--n].host)
            return true;
    return false;
}

tenrec_status region_bytes_new(const struct region_bytes *b, tenrec_tensor_free_fn *free_fn,
                               void *arg, struct tenrec_tensor **ret, tenrec_error *err)
{
    const int64_t shape = (int64_t)b->bytes;
    struct tenrec_tensor_desc d;
    tenrec_status st = tensor_describe(TENREC_UINT8, 1, &shape, &d, err);

    d.data = b->host ? tenrec_tensor_data(b->host) : bytes_data(b);
    d.flags = TENREC_TENSOR_UNSHARED; /* a mapping outlives the message, and so the pin */
    if (!b->host) {
        d.device = tenrec_tensor_desc(b->of)->device;
        d.stream = tenrec_tensor_desc(b->of)->stream;
    }
    return st == TENREC_OK ? tensor_from_desc(&d, free_fn, arg, ret, err) : st;
}

/* ---- copies --------------------------------------------------------------------------- */

static struct tenrec_stream copy_stream(const struct region_bytes *b)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(b->of);

    return (struct tenrec_stream){ d->device, d->stream };
}

static tenrec_status copy_queue(const struct region_bytes *b, bool to_device, tenrec_error *err)
{
    const struct tenrec_stream s = copy_stream(b);
    void *device = bytes_data(b), *host = tenrec_tensor_data(b->host);
    const struct tenrec_device_ops *ops;
    tenrec_status st = stream_ops_for(s.device, &ops, err);

    if (st != TENREC_OK)
        return st;
    return ops->copy(&s, to_device ? device : host, to_device ? host : device, b->bytes, err);
}

/* Waits for the queued copies, also after a failure: they use the memory. */
static tenrec_status copy_wait(const struct region_bytes *b, size_t n, tenrec_error *err)
{
    struct tenrec_stream last = { 0 };
    tenrec_status st = TENREC_OK;
    tenrec_error why;

    for (size_t i = 0; i < n; i++) {
        const struct tenrec_stream s = copy_stream(&b[i]);
        if (!b[i].host || stream_equal(&s, &last))
            continue;
        last = s;
        if (tenrec_stream_wait(&s, &why) != TENREC_OK && st == TENREC_OK) {
            st = why.code;
            *err = why;
        }
    }
    return st;
}

static tenrec_status copy_all(const struct region_copy *c, tenrec_error *err)
{
    tenrec_status st = TENREC_OK, waited;
    tenrec_error why;
    size_t n = 0;

    for (; n < c->n && st == TENREC_OK; n++)
        if (c->bytes[n].host)
            st = copy_queue(&c->bytes[n], c->to_device, err);
    waited = copy_wait(c->bytes, n, &why);
    if (st == TENREC_OK && (st = waited) != TENREC_OK)
        *err = why;
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "copy %s a device", c->to_device ? "to" : "from");
    return st;
}

static void copy_run(struct pool_task *t)
{
    struct region_copy *c = (struct region_copy *)(void *)t;
    struct tenrec_worker *w = c->w;
    tenrec_error why, left;
    const bool failed = copy_all(c, &why) != TENREC_OK;
    const bool entered = worker_enter(w, &left) == TENREC_OK;

    c->done(c, entered, failed ? &why : entered ? NULL : &left);
    if (entered)
        worker_leave(w);
}

/* Returns the threads of the copies, which are made when needed. */
static struct pool *copy_threads(struct region_table *t, tenrec_error *err)
{
    struct pool *p;

    pthread_mutex_lock(&t->lock);
    if (!t->copies && pool_open(COPY_THREADS, COPIES_MAX, NULL, NULL, &t->copies, err) != TENREC_OK)
        t->copies = NULL;
    p = t->copies;
    pthread_mutex_unlock(&t->lock);
    return p;
}

void region_copy_begin(struct region_copy *c)
{
    tenrec_error why;
    struct pool *p = copy_threads(*region_table_of(c->w), &why);

    c->task.fn = copy_run;
    c->task.bytes = 0;
    if (p && pool_run(p, &c->task) == TENREC_OK)
        return;
    if (p)
        tenrec_fail(&why, TENREC_EOS, "cannot start a thread for copies of device memory");
    c->done(c, true, &why);
}

void region_copies_close(struct region_table *t)
{
    struct pool *p;

    pthread_mutex_lock(&t->lock);
    p = t->copies;
    t->copies = NULL;
    pthread_mutex_unlock(&t->lock);
    pool_close(p);
}
