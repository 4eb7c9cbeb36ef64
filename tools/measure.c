/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the callee ----------------------------------------------------------------- */

static unsigned char measure_pattern(size_t i)
{
    return (unsigned char)(i * 131 + (i >> 12) + 7);
}

static tenrec_status on_nothing(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call;
    (void)arg;
    (void)err;
    return TENREC_OK;
}

/* Receives a tensor; compares it if the second argument is true. */
static tenrec_status on_tensor(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    const unsigned char *p;
    bool compare = false;
    tenrec_status st = tenrec_call_get_args(call, err, "t|b", &t, &compare);

    (void)arg;
    if (st || !compare)
        return st;
    p = tenrec_tensor_data(t);
    for (size_t i = 0; i < tenrec_tensor_bytes(t); i++)
        if (p[i] != measure_pattern(i))
            return tenrec_fail(err, TENREC_EPROTOCOL, "byte %zu of the received tensor is corrupt",
                               i);
    return TENREC_OK;
}

static tenrec_status on_end(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct measure_callee *c = arg;

    (void)call;
    (void)err;
    sem_post(&c->end);
    return TENREC_OK;
}

static void *lend_buffer(void *arg, const struct tenrec_tensor_desc *desc)
{
    struct measure_callee *c = arg;

    return desc->bytes <= c->size ? c->buffer : NULL;
}

static void keep_buffer(void *arg, void *data)
{
    (void)arg;
    (void)data;
}

tenrec_status measure_callee_init(struct measure_callee *c, struct tenrec_worker *w, size_t size,
                                  uint32_t flags, tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
    } function[] = {
        { "measure.nothing", on_nothing },
        { "measure.tensor", on_tensor },
        { "measure.end", on_end },
    };
    struct tenrec_allocator a = {
        .size = sizeof a, .alloc = lend_buffer, .free_fn = keep_buffer, .arg = c
    };
    tenrec_status st = TENREC_OK;

    memset(c, 0, sizeof *c);
    c->size = size;
    c->buffer = aligned_alloc(64, (size + 64) & ~(size_t)63);
    if (!c->buffer)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a buffer of %zu bytes", size);
    memset(c->buffer, 1, size); /* allocates its pages */
    sem_init(&c->end, 0, 0);
    for (size_t i = 0; !st && i < sizeof function / sizeof function[0]; i++)
        st = tenrec_worker_register_function(w, function[i].name, function[i].fn, c, flags, err);
    return st ? st : tenrec_worker_set_allocator(w, &a, err);
}

void measure_callee_wait(struct measure_callee *c)
{
    while (sem_wait(&c->end))
        ;
}

void measure_callee_finish(struct measure_callee *c)
{
    if (!c->buffer)
        return;
    free(c->buffer);
    sem_destroy(&c->end);
    c->buffer = NULL;
}

/* ---- the caller ------------------------------------------------------------------- */

static tenrec_status measure_call(const struct measure *m, const char *function,
                                  const struct tenrec_value *args, size_t n, tenrec_error *err)
{
    return tenrec_rpc_sync(m->worker, m->to, function, args, n, NULL, NULL, err);
}

tenrec_status measure_latency(const struct measure *m, struct samples *s, tenrec_error *err)
{
    void *data = calloc(1, m->size ? m->size : 1);
    struct tenrec_value arg;
    tenrec_status st = TENREC_OK;

    if (!data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu bytes", m->size);
    arg = tenrec_value_bytes(data, m->size);
    for (size_t i = 0; !st && i < m->warm + m->calls; i++) {
        uint64_t t = samples_now_ns();

        st = measure_call(m, "measure.nothing", &arg, m->size ? 1 : 0, err);
        if (i >= m->warm)
            samples_add(s, samples_now_ns() - t);
    }
    free(data);
    return st;
}

struct rate {
    const struct measure *m;
    struct tenrec_value arg;
    _Atomic size_t to_make, to_end; /* calls */
    _Atomic bool failed;
    tenrec_error why;          /* of the first failure; the thread that set failed writes it */
    struct tenrec_future *end; /* done when all calls have ended */
};

static void some_ended(struct rate *r, size_t n)
{
    struct tenrec_value nil = tenrec_value_nil();
    struct tenrec_future *end;

    if (atomic_fetch_sub(&r->to_end, n) != n)
        return;
    end = tenrec_future_share(r->end);
    tenrec_future_set_value(end, &nil, NULL);
    tenrec_future_drop(end); /* `r` may be freed by now */
}

/* Makes no further calls; those in flight go on. */
static void one_failed(struct rate *r, const tenrec_error *why)
{
    if (!atomic_exchange(&r->failed, true))
        r->why = *why;
    some_ended(r, 1 + atomic_exchange(&r->to_make, 0));
}

static bool take_one(struct rate *r)
{
    size_t left = atomic_load(&r->to_make);

    while (left)
        if (atomic_compare_exchange_weak(&r->to_make, &left, left - 1))
            return true;
    return false;
}

static void make_one(struct rate *r);

static void on_done(struct tenrec_future *f, void *arg)
{
    struct rate *r = arg;
    const tenrec_error *why = tenrec_future_error(f);

    if (why) {
        one_failed(r, why);
        return;
    }
    make_one(r);
    some_ended(r, 1);
}

static void make_one(struct rate *r)
{
    struct tenrec_future *f;
    tenrec_error err;

    if (!take_one(r))
        return;
    if (tenrec_rpc_async(r->m->worker, r->m->to, "measure.nothing", &r->arg, r->m->size ? 1 : 0,
                         NULL, &f, &err)) {
        one_failed(r, &err);
        return;
    }
    if (tenrec_future_add_callback(f, on_done, r, &err))
        one_failed(r, &err);
    tenrec_future_drop(f);
}

static tenrec_status run_rate(const struct measure *m, size_t calls, const void *data,
                              tenrec_error *err)
{
    struct rate r = { .m = m, .arg = tenrec_value_bytes(data, m->size) };
    tenrec_status st = tenrec_future_new(&r.end, err);

    if (st)
        return st;
    atomic_init(&r.to_make, calls);
    atomic_init(&r.to_end, calls);
    for (size_t i = 0; i < m->inflight && i < calls; i++)
        make_one(&r);
    st = tenrec_future_wait(r.end, TENREC_TIMEOUT_NONE, err);
    tenrec_future_drop(r.end);
    if (!st && atomic_load(&r.failed)) {
        if (err)
            *err = r.why;
        return r.why.code;
    }
    return st;
}

tenrec_status measure_rate(const struct measure *m, uint64_t *ret_ns, tenrec_error *err)
{
    void *data = calloc(1, m->size ? m->size : 1);
    tenrec_status st;
    uint64_t t;

    if (!data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu bytes", m->size);
    st = m->warm ? run_rate(m, m->warm, data, err) : TENREC_OK;
    t = samples_now_ns();
    if (!st)
        st = run_rate(m, m->calls, data, err);
    *ret_ns = samples_now_ns() - t;
    free(data);
    return st;
}

tenrec_status measure_bandwidth(const struct measure *m, struct samples *s, tenrec_error *err)
{
    int64_t shape = (int64_t)m->size;
    struct tenrec_tensor *t;
    struct tenrec_value args[2];
    unsigned char *p;
    tenrec_status st = tenrec_tensor_new(TENREC_UINT8, 1, &shape, &t, err);

    if (st)
        return st;
    p = tenrec_tensor_data(t);
    for (size_t i = 0; i < m->size; i++)
        p[i] = measure_pattern(i);
    args[0] = tenrec_value_tensor(t);
    args[1] = tenrec_value_bool(true);
    st = measure_call(m, "measure.tensor", args, 2, err);
    for (size_t i = 0; !st && i < m->warm + m->calls; i++) {
        uint64_t begin = samples_now_ns();

        st = measure_call(m, "measure.tensor", args, 1, err);
        if (i >= m->warm)
            samples_add(s, samples_now_ns() - begin);
    }
    tenrec_tensor_drop(t);
    return st;
}

tenrec_status measure_end(const struct measure *m, tenrec_error *err)
{
    return measure_call(m, "measure.end", NULL, 0, err);
}
