/* SPDX-License-Identifier: Apache-2.0 */
#include "torture.h"
#include "../testing.h"

#include <stdatomic.h>

#include <tenrec/backend.h>

enum {
    RUNS_MAX = 20000, /* more means that something never stops trying */
    TRIES = 5,        /* of one without a failure: a busy machine lets its limit pass */
};

static atomic_int what; /* enum torture_kind */
static atomic_bool on;
static atomic_long seen;        /* in this run */
static atomic_long first, last; /* the numbers that fail */
static atomic_bool happened;

/* Returns true if this allocation or send has to fail. */
static bool fails(enum torture_kind kind)
{
    long n;

    if (!atomic_load_explicit(&on, memory_order_relaxed) || atomic_load(&what) != (int)kind)
        return false;
    n = atomic_fetch_add(&seen, 1) + 1;
    if (n < atomic_load(&first) || n > atomic_load(&last))
        return false;
    atomic_store(&happened, true);
    return true;
}

void torture_on(void)
{
    atomic_store(&on, true);
}

void torture_off(void)
{
    atomic_store(&on, false);
}

bool torture_happened(void)
{
    return atomic_load(&happened);
}

unsigned torture(enum torture_kind kind, unsigned in_a_row, torture_fn *fn, void *arg)
{
    int tries = 0;

    atomic_store(&what, (int)kind);
    for (long n = 1; n < RUNS_MAX; n++) {
        tenrec_error err = { .code = TENREC_OK };
        tenrec_status st;

        atomic_store(&seen, 0);
        atomic_store(&happened, false);
        atomic_store(&first, n);
        atomic_store(&last, n + in_a_row - 1);
        st = fn(arg, &err);
        torture_off();
        if (st != TENREC_OK && (err.code != st || !*err.text))
            fail_msg("failure %ld: returned %s, but the error says %s '%s'", n,
                     tenrec_status_name(st), tenrec_status_name(err.code), err.text);
        if (torture_happened()) {
            tries = 0;
            continue;
        }
        if (atomic_load(&seen) == 0)
            fail_msg("nothing was there to fail: is torture_on called?");
        if (st != TENREC_OK && ++tries < TRIES) {
            n--;
            continue;
        }
        if (st != TENREC_OK)
            fail_msg("without a failure: %s: %s", tenrec_status_name(st), err.text);
        atomic_store(&last, 0); /* a scenario that runs by itself is left alone */
        return (unsigned)n - 1;
    }
    fail_msg("still something to fail after %d runs", RUNS_MAX);
    return 0;
}

/* ---- allocations ----------------------------------------------------------- */

/* The linker puts these in the place of the C library's (--wrap). */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);

void *__wrap_malloc(size_t n)
{
    return fails(TORTURE_ALLOCATIONS) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(TORTURE_ALLOCATIONS) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
    return fails(TORTURE_ALLOCATIONS) ? NULL : __real_realloc(old, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return fails(TORTURE_ALLOCATIONS) ? NULL : __real_aligned_alloc(alignment, n);
}

/* ---- sends: a backend that wraps ------------------------------------------- */

struct report {
    struct tenrec_done done; /* of the sender */
};

static void on_sent(void *arg, const tenrec_error *err)
{
    struct report *r = arg;

    if (err && r->done.fn)
        r->done.fn(r->done.arg, err);
    else if (!err)
        tenrec_done_fail(r->done, TENREC_EINJECTED, "torture: sent, but reported failed");
    free(r);
}

static void torture_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done)
{
    struct report *r;

    if (fails(TORTURE_SENDS)) {
        msg->release(msg);
        tenrec_done_fail(done, TENREC_EINJECTED, "torture: this send fails");
    } else if (fails(TORTURE_ARRIVALS)) {
        msg->release(msg);
        tenrec_done_succeed(done);
    } else if (fails(TORTURE_REPORTS) && (r = __real_malloc(sizeof *r))) {
        r->done = done;
        self->host->send_inner(self, to, msg, (struct tenrec_done){ on_sent, r });
    } else {
        self->host->send_inner(self, to, msg, done);
    }
}

static const struct tenrec_agent_ops torture_ops = {
    .size = sizeof torture_ops,
    .send = torture_send,
};

static tenrec_status torture_construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status torture_init(const struct tenrec_init *in, struct tenrec_agent *self,
                                  tenrec_error *err)
{
    (void)in, (void)err;
    self->ops = &torture_ops;
    return TENREC_OK;
}

static const struct tenrec_plugin torture_plugin = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_WRAPS,
    .name = "torture",
    .version = "1.0",
    .summary = "Fails the nth send of all workers of the process.",
};

void torture_register(void)
{
    tenrec_error err;

    if (!tenrec_backend_registered("torture") &&
        tenrec_register_backend(&torture_plugin, torture_construct, torture_init, &err) !=
            TENREC_OK)
        fail_msg("%s", err.text);
}
