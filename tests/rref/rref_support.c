/* SPDX-License-Identifier: Apache-2.0 */
#include "rref_support.h"
#include "../support/basic_functions.h"
#include "../testing.h"

#include "../support/functions.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* ---- an object ---------------------------------------------------------------- */

struct table {
    size_t n;
    int64_t entry[];
};

static atomic_int alive;

int tables_alive(void)
{
    return atomic_load(&alive);
}

static struct table *table_new(size_t n)
{
    struct table *t = calloc(1, sizeof *t + n * sizeof t->entry[0]);

    if (!t)
        return NULL;
    t->n = n;
    atomic_fetch_add(&alive, 1);
    return t;
}

static void table_free(void *data, void *arg)
{
    (void)arg;
    free(data);
    atomic_fetch_sub(&alive, 1);
}

static tenrec_status table_encode(const void *data, void *arg, struct tenrec_value **ret,
                                  tenrec_error *err)
{
    const struct table *t = data;
    const struct tenrec_value v = tenrec_value_bytes(t->entry, t->n * sizeof t->entry[0]);

    (void)arg;
    return tenrec_value_copy(&v, ret, err);
}

static tenrec_status table_decode(const struct tenrec_value *value, void *arg, void **ret,
                                  tenrec_error *err)
{
    struct table *t;

    (void)arg;
    if (value->type != TENREC_VALUE_BYTES || value->n % sizeof t->entry[0] != 0)
        return tenrec_fail(err, TENREC_EPROTOCOL, "a table is bytes");
    t = table_new((size_t)value->n / sizeof t->entry[0]);
    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a table");
    memcpy(t->entry, value->u.bytes, (size_t)value->n);
    *ret = t;
    return TENREC_OK;
}

const struct tenrec_object_type table_type = { .size = sizeof table_type,
                                               .name = "table",
                                               .free_fn = table_free,
                                               .encode = table_encode,
                                               .decode = table_decode };

static const struct tenrec_object_type sealed_type = { .size = sizeof sealed_type,
                                                       .name = "sealed",
                                                       .free_fn = table_free };

static tenrec_status return_object(struct tenrec_call *c, const struct tenrec_object_type *type,
                                   struct table *t, tenrec_error *err)
{
    struct tenrec_object *o = NULL;
    struct tenrec_value v;
    tenrec_status st = t ? tenrec_object_new(type, t, &o, err)
                         : tenrec_fail(err, TENREC_ENOMEM, "no memory for a table");

    if (st != TENREC_OK) {
        if (t)
            table_free(t, NULL);
        return st;
    }
    v = tenrec_value_object(o);
    st = tenrec_call_return(c, &v, err);
    tenrec_object_drop(o);
    return st;
}

static tenrec_status table(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct table *t;
    int64_t size;
    size_t n;
    const struct tenrec_value *v = tenrec_call_args(c, &n);
    tenrec_status st = tenrec_value_unpack(v, n, err, "i", &size);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    t = table_new((size_t)size);
    for (size_t i = 0; t && i < t->n; i++)
        t->entry[i] = (int64_t)i;
    return return_object(c, &table_type, t, err);
}

static tenrec_status sealed(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return return_object(c, &sealed_type, table_new(1), err);
}

static tenrec_status lookup(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value result;
    const struct tenrec_value *first;
    struct table *t;
    void *data;
    int64_t i;
    size_t n;
    const struct tenrec_value *v = tenrec_call_args(c, &n);
    tenrec_status st = tenrec_value_unpack(v, n, err, "vi", &first, &i);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_object_get(first, &table_type, &data, err);
    if (st != TENREC_OK)
        return st;
    t = data;
    if (i < 0 || (size_t)i >= t->n)
        return tenrec_fail(err, TENREC_EINVAL, "the table has %zu entries", t->n);
    result = tenrec_value_int(t->entry[i]);
    return tenrec_call_return(c, &result, err);
}

static tenrec_status put(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_object *o;
    struct table *t;
    int64_t i, to;
    size_t n;
    const struct tenrec_value *v = tenrec_call_args(c, &n);
    tenrec_status st = tenrec_value_unpack(v, n, err, "oii", &o, &i, &to);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    t = tenrec_object_data(o, &table_type);
    if (!t || i < 0 || (size_t)i >= t->n)
        return tenrec_fail(err, TENREC_EINVAL, "no such entry");
    t->entry[i] = to;
    return TENREC_OK;
}

/* ---- functions on references ------------------------------------------------------ */

static tenrec_status broken(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg;
    return tenrec_fail(err, TENREC_EINVAL, "broken on purpose");
}

static tenrec_status fetch(struct tenrec_call *c, int64_t factor, tenrec_error *err)
{
    struct tenrec_value *got = NULL, result;
    struct tenrec_rref *r;
    tenrec_status st = tenrec_call_get_args(c, err, "r", &r);

    if (st == TENREC_OK)
        st = tenrec_rref_to_here(r, NULL, &got, err);
    if (st != TENREC_OK)
        return st;
    result = *got;
    if (result.type == TENREC_VALUE_INT)
        result.u.integer *= factor;
    st = tenrec_call_return(c, &result, err);
    tenrec_value_drop(got);
    return st;
}

static tenrec_status to_here(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return fetch(c, 1, err);
}

static tenrec_status twice(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return fetch(c, 2, err);
}

static tenrec_status give(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value *got = NULL, send;
    struct tenrec_rref *r;
    const char *to;
    tenrec_status st = tenrec_call_get_args(c, err, "sr", &to, &r);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    send = tenrec_value_rref(r);
    st = tenrec_rpc_sync(tenrec_call_worker(c), to, "to_here", &send, 1, NULL, &got, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_call_return(c, got, err);
    tenrec_value_drop(got);
    return st;
}

/* By rank: each worker keeps one. */
static struct tenrec_rref *kept_by[CLUSTER_MAX];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_this(size_t rank, struct tenrec_rref *r)
{
    struct tenrec_rref *former;

    pthread_mutex_lock(&kept_lock);
    former = kept_by[rank];
    kept_by[rank] = r;
    pthread_mutex_unlock(&kept_lock);
    tenrec_rref_drop(former);
}

void rref_release_kept(void)
{
    for (size_t i = 0; i < CLUSTER_MAX; i++)
        keep_this(i, NULL);
}

static size_t rank_of(const struct tenrec_call *c)
{
    struct tenrec_worker_info me = { .id = 0 };

    tenrec_get_worker_info(tenrec_call_worker(c), NULL, &me, NULL);
    return (size_t)me.id;
}

static tenrec_status keep(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_rref *r;
    tenrec_status st = tenrec_call_get_args(c, err, "r", &r);

    (void)arg;
    if (st == TENREC_OK)
        keep_this(rank_of(c), tenrec_rref_share(r));
    return st;
}

static tenrec_status kept(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_value *got = NULL;
    tenrec_status st;

    (void)arg;
    st = tenrec_rref_to_here(kept_by[rank_of(c)], NULL, &got, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_call_return(c, got, err);
    tenrec_value_drop(got);
    return st;
}

static tenrec_status release(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg, (void)err;
    keep_this(rank_of(c), NULL);
    return TENREC_OK;
}

static tenrec_status make(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_rref *r;
    struct tenrec_value v;
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    tenrec_status st;

    (void)arg;
    st = tenrec_rref_new(tenrec_call_worker(c), args, &r, err);
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_rref(r);
    st = tenrec_call_return(c, &v, err);
    tenrec_rref_drop(r);
    return st;
}

static tenrec_status chain(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_rref *r;
    struct tenrec_value v;
    size_t n;
    const struct tenrec_value *args = tenrec_call_args(c, &n);
    const bool last = n == 2;
    tenrec_status st;

    (void)arg;
    st = tenrec_remote(tenrec_call_worker(c), args[0].u.text, last ? "value" : "chain", args + 1,
                       n - 1, NULL, &r, err);
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_rref(r);
    st = tenrec_call_return(c, &v, err);
    tenrec_rref_drop(r);
    return st;
}

void rref_functions(struct tenrec_worker *w, size_t rank)
{
    static const struct basic_function list[] = {
        { "value", basic_echo, TENREC_POOL }, { "value_inline", basic_echo, TENREC_INLINE },
        { "broken", broken, TENREC_POOL },    { "table", table, TENREC_INLINE },
        { "sealed", sealed, TENREC_POOL },    { "lookup", lookup, TENREC_INLINE },
        { "put", put, TENREC_POOL },          { "to_here_inline", to_here, TENREC_INLINE },
        { "to_here", to_here, TENREC_POOL },  { "twice", twice, TENREC_POOL },
        { "give", give, TENREC_POOL },        { "keep", keep, TENREC_INLINE },
        { "kept", kept, TENREC_POOL },        { "release", release, TENREC_POOL },
        { "make", make, TENREC_INLINE },      { "chain", chain, TENREC_POOL },
    };
    tenrec_error err;

    functions_register(w, rank);
    expect_ok(basic_register(w, list, sizeof list / sizeof *list, &err), err);
    expect_ok(tenrec_worker_register_object_type(w, &table_type, &err), err);
}

/* ---- waiting and shortcuts ------------------------------------------------------------ */

struct rref_counts counts_of(struct tenrec_worker *w)
{
    struct rref_counts n = { .num_forks = 0 };

    if (worker_enter(w, NULL) == TENREC_OK) {
        n = rref_context_count(rref_context_of(w));
        worker_leave(w);
    }
    return n;
}

static void pause_a_little(void)
{
    poll(NULL, 0, 1); /* no wake-up exists here, so poll */
}

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void wait_owners_and_forks(struct tenrec_worker *w, size_t owners, size_t forks)
{
    const uint64_t until = now_ms() + CLUSTER_LONG_MS;
    struct rref_counts n;

    while ((n = counts_of(w)).num_owner_rrefs != owners || n.num_forks != forks) {
        if (now_ms() > until)
            fail_msg("%zu owners and %zu forks, expected %zu and %zu", n.num_owner_rrefs,
                     n.num_forks, owners, forks);
        pause_a_little();
    }
}

void wait_flushed(struct tenrec_worker *w)
{
    const uint64_t until = now_ms() + CLUSTER_LONG_MS;
    struct rref_counts n;

    while ((n = counts_of(w)).num_pending_users || n.num_pending_children ||
           n.num_pending_futures) {
        if (now_ms() > until)
            fail_msg("%zu users, %zu children and %zu messages are pending", n.num_pending_users,
                     n.num_pending_children, n.num_pending_futures);
        pause_a_little();
    }
}

int64_t int_of(struct tenrec_rref *r)
{
    struct tenrec_value *v = NULL;
    tenrec_error err;
    int64_t i;

    expect_ok(tenrec_rref_to_here(r, NULL, &v, &err), err);
    assert_int_equal(v->type, TENREC_VALUE_INT);
    i = v->u.integer;
    tenrec_value_drop(v);
    return i;
}

struct tenrec_rref *remote_int(struct tenrec_worker *w, const char *to, int64_t i)
{
    const struct tenrec_value v = tenrec_value_int(i);
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(w, to, "value", &v, 1, NULL, &r, &err), err);
    return r;
}

struct tenrec_rref *new_int(struct tenrec_worker *w, int64_t i)
{
    const struct tenrec_value v = tenrec_value_int(i);
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    expect_ok(tenrec_rref_new(w, &v, &r, &err), err);
    return r;
}

int64_t call_int(struct tenrec_worker *w, const char *to, const char *function,
                 const struct tenrec_value *args, size_t n)
{
    struct tenrec_value *v = NULL;
    tenrec_error err;
    int64_t i = 0;

    expect_ok(tenrec_rpc_sync(w, to, function, args, n, NULL, &v, &err), err);
    if (v->type == TENREC_VALUE_INT)
        i = v->u.integer;
    tenrec_value_drop(v);
    return i;
}
