/* SPDX-License-Identifier: Apache-2.0 */
/* beside.c - small calls beside large tensors to the same peer: how long a call takes alone and
 * meanwhile, and what the tensors lose. */
#include "../pair.h"
#include "modes.h"
#include "samples.h"
#include "side.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BESIDE_BYTES ((int64_t)256 << 20)
#define BESIDE_GAP_NS 200000u /* between two small calls */
#define BESIDE_CALLS 20000

struct beside {
    struct side *side;
    struct tenrec_worker *w;
    struct tenrec_tensor *tensor;
    bool out, in;
    atomic_bool stop;
    atomic_ulong tensors;
};

static tenrec_status beside_nothing(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    return tenrec_call_return(call, NULL, err);
}

static tenrec_status beside_give(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct beside *b = arg;
    struct tenrec_value v = tenrec_value_tensor(b->tensor);

    return tenrec_call_return(call, &v, err);
}

static struct tenrec_tensor *beside_tensor(void)
{
    const int64_t shape = BESIDE_BYTES;
    struct tenrec_tensor *t;
    tenrec_error err;

    if (tenrec_tensor_new(TENREC_UINT8, 1, &shape, &t, &err))
        side_give_up(&err);
    pair_fill(tenrec_tensor_data(t), (size_t)BESIDE_BYTES);
    return t;
}

static void beside_begin(struct beside *b, int rank)
{
    tenrec_error err;

    b->w = side_worker(b->side, rank);
    b->tensor = beside_tensor();
    if (tenrec_worker_register_function(b->w, "nothing", beside_nothing, NULL, TENREC_INLINE,
                                        &err) ||
        tenrec_worker_register_function(b->w, "give", beside_give, b, TENREC_INLINE, &err) ||
        tenrec_init_rpc(b->w, &err))
        side_give_up(&err);
}

static int beside_serve(void *arg)
{
    struct beside *b = arg;

    beside_begin(b, 1);
    side_end_worker(b->w);
    tenrec_tensor_drop(b->tensor);
    return 0;
}

static void beside_call(struct beside *b, const char *function, const struct tenrec_value *v)
{
    struct tenrec_value *ret;
    tenrec_error err;

    if (tenrec_rpc_sync(b->w, "w1", function, v, v ? 1 : 0, NULL, &ret, &err))
        side_give_up(&err);
    tenrec_value_drop(ret);
}

/* One tensor after the other, until `stop`. */
static void *beside_send(void *arg)
{
    struct beside *b = arg;
    const struct tenrec_value v = tenrec_value_tensor(b->tensor);

    while (!atomic_load(&b->stop)) {
        beside_call(b, "nothing", &v);
        atomic_fetch_add(&b->tensors, 1);
    }
    return NULL;
}

static void *beside_fetch(void *arg)
{
    struct beside *b = arg;

    while (!atomic_load(&b->stop)) {
        beside_call(b, "give", NULL);
        atomic_fetch_add(&b->tensors, 1);
    }
    return NULL;
}

static void beside_small(struct beside *b, struct samples *s, uint64_t for_ns)
{
    const uint64_t until = samples_now_ns() + for_ns;
    uint64_t now;

    while ((now = samples_now_ns()) < until) {
        const struct timespec gap = { 0, BESIDE_GAP_NS };

        beside_call(b, "nothing", NULL);
        samples_add(s, samples_now_ns() - now);
        nanosleep(&gap, NULL);
    }
}

/* GB/s of the tensors, with small calls (s) or without. */
static double beside_bulk(struct beside *b, struct samples *s, unsigned ms)
{
    pthread_t thread[2];
    unsigned n = 0;
    uint64_t since;

    atomic_store(&b->stop, false);
    atomic_store(&b->tensors, 0);
    since = samples_now_ns();
    if ((b->out && pthread_create(&thread[n++], NULL, beside_send, b)) ||
        (b->in && pthread_create(&thread[n++], NULL, beside_fetch, b)))
        pair_die("pthread_create");
    if (s)
        beside_small(b, s, (uint64_t)ms * 1000000);
    else
        side_pause_ms(ms);
    atomic_store(&b->stop, true);
    while (n)
        pthread_join(thread[--n], NULL);
    return (double)atomic_load(&b->tensors) * (double)BESIDE_BYTES /
           (double)(samples_now_ns() - since);
}

int beside_main(const char *via, const char *where)
{
    struct beside b = { .side = side_new(via, "sleep", 2),
                        .out = strcmp(where, "in") != 0,
                        .in = strcmp(where, "out") != 0 };
    const unsigned ms = pair_quick() ? 700 : 2500;
    struct samples alone, meanwhile;
    pid_t callee = pair_fork(beside_serve, &b);
    double bulk, both;
    bool ended;

    if (samples_init(&alone, BESIDE_CALLS) || samples_init(&meanwhile, BESIDE_CALLS))
        return 1;
    beside_begin(&b, 0);
    beside_small(&b, &alone, 500000000);
    alone.n = 0;
    beside_small(&b, &alone, (uint64_t)ms * 500000);
    bulk = beside_bulk(&b, NULL, ms);
    both = beside_bulk(&b, &meanwhile, ms);
    printf("{\"peer\": \"tenrec\", \"via\": \"%s\", \"mode\": \"beside\", \"where\": \"%s\", "
           "\"idle_p50_us\": %.1f, \"idle_p99_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"p50_ratio\": %.2f, \"p99_ratio\": %.2f, \"gb_per_s\": %.2f, \"bulk_ratio\": %.2f}\n",
           via, where, samples_us(&alone, 0.5), samples_us(&alone, 0.99),
           samples_us(&meanwhile, 0.5), samples_us(&meanwhile, 0.99),
           samples_us(&meanwhile, 0.5) / samples_us(&alone, 0.5),
           samples_us(&meanwhile, 0.99) / samples_us(&alone, 0.99), both, both / bulk);
    side_end_worker(b.w);
    tenrec_tensor_drop(b.tensor);
    samples_finish(&alone);
    samples_finish(&meanwhile);
    ended = pair_join(callee); /* it may read the store for a moment longer */
    side_drop(b.side);
    return ended ? 0 : 1;
}
