/* SPDX-License-Identifier: Apache-2.0 */
#include "references.h"

#include <pthread.h>

/* ---- an object, as torch's tests have classes ---------------------------------------- */

struct counter {
    pthread_mutex_t lock;
    int64_t value;
};

static void counter_free(void *data, void *arg)
{
    struct counter *c = data;

    (void)arg;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static const struct tenrec_object_type counter_type = { .size = sizeof counter_type,
                                                        .name = "counter",
                                                        .free_fn = counter_free };

/* counter_new(start): a new object. */
static tenrec_status counter_new(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct counter *c = calloc(1, sizeof *c);
    struct tenrec_object *o = NULL;
    struct tenrec_value v;
    int64_t start;
    tenrec_status st = tenrec_call_get_args(call, err, "i", &start);

    (void)arg;
    if (!c || st != TENREC_OK) {
        free(c);
        return c ? st : tenrec_fail(err, TENREC_ENOMEM, "no memory");
    }
    pthread_mutex_init(&c->lock, NULL);
    c->value = start;
    if ((st = tenrec_object_new(&counter_type, c, &o, err)) != TENREC_OK) {
        counter_free(c, NULL);
        return st;
    }
    v = tenrec_value_object(o);
    st = tenrec_call_return(call, &v, err);
    tenrec_object_drop(o);
    return st;
}

/* counter_add(counter, more): its value then; with `arg` not before the gate of
 * the caller is open. */
static tenrec_status counter_add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value *self;
    struct counter *c = NULL;
    struct tenrec_value v;
    void *data = NULL;
    int64_t more;
    tenrec_status st = tenrec_call_get_args(call, err, "vi", &self, &more);

    if (st == TENREC_OK)
        st = tenrec_object_get(self, &counter_type, &data, err);
    if (st != TENREC_OK)
        return st;
    if (arg)
        gate_wait(tenrec_call_from(call).id);
    c = data;
    pthread_mutex_lock(&c->lock);
    c->value += more;
    v = tenrec_value_int(c->value);
    pthread_mutex_unlock(&c->lock);
    return tenrec_call_return(call, &v, err);
}

/* counter_add_later(counter, more): the same, answered from another thread. */
static void *finish_counter_add(void *arg)
{
    struct tenrec_call *call = arg;
    tenrec_error err;

    tenrec_call_finish(call, counter_add(call, NULL, &err) == TENREC_OK ? NULL : &err);
    return NULL;
}

static tenrec_status counter_add_later(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    (void)arg;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &attr, finish_counter_add, call);
    pthread_attr_destroy(&attr);
    return r ? tenrec_fail_errno(err, TENREC_EOS, r, "no thread") : TENREC_OK;
}

/* slow_counter_new(start): once the gate of the caller is open. */
static tenrec_status slow_counter_new(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    gate_wait(tenrec_call_from(call).id);
    return counter_new(call, arg, err);
}

/* rows(tensor) */
static tenrec_status rows(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *t;
    struct tenrec_value v;
    tenrec_status st = tenrec_call_get_args(call, err, "t", &t);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_int(tenrec_tensor_desc(t)->shape[0]);
    return tenrec_call_return(call, &v, err);
}

/* ---- references as arguments and results ------------------------------------------------ */

static tenrec_status fetched_sum(struct tenrec_call *call, struct tenrec_rref *a,
                                 struct tenrec_rref *b, const struct tenrec_value *x,
                                 tenrec_error *err)
{
    struct tenrec_value *left = NULL, *right = NULL, *sum = NULL;
    tenrec_status st = tenrec_rref_to_here(a, NULL, &left, err);

    if (st == TENREC_OK && b)
        st = tenrec_rref_to_here(b, NULL, &right, err);
    if (st == TENREC_OK)
        st = add_values(left, b ? right : x, &sum, err);
    if (st == TENREC_OK)
        st = tenrec_call_return(call, sum, err);
    tenrec_value_drop(left);
    tenrec_value_drop(right);
    tenrec_value_drop(sum);
    return st;
}

static tenrec_status add_to_reference(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value *x;
    struct tenrec_rref *r;
    tenrec_status st = tenrec_call_get_args(call, err, "rv", &r, &x);

    (void)arg;
    return st == TENREC_OK ? fetched_sum(call, r, NULL, x, err) : st;
}

static tenrec_status sum_of_references(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_rref *a, *b;
    tenrec_status st = tenrec_call_get_args(call, err, "rr", &a, &b);

    (void)arg;
    return st == TENREC_OK ? fetched_sum(call, a, b, NULL, err) : st;
}

/* (dst, x): a reference to x + more on dst. */
static tenrec_status remote_sum(struct tenrec_call *call, int64_t more, struct tenrec_rref **ret,
                                tenrec_error *err)
{
    const struct tenrec_value *x;
    struct tenrec_value sum[2];
    const char *dst;
    tenrec_status st = tenrec_call_get_args(call, err, "sv", &dst, &x);

    if (st != TENREC_OK)
        return st;
    sum[0] = *x;
    sum[1] = tenrec_value_int(more);
    return tenrec_remote(tenrec_call_worker(call), dst, "add", sum, 2, NULL, ret, err);
}

static tenrec_status nested_add_of(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value *sum = NULL;
    struct tenrec_rref *r = NULL;
    tenrec_status st = remote_sum(call, 1, &r, err);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_rref_to_here(r, NULL, &sum, err);
    if (st == TENREC_OK)
        st = tenrec_call_return(call, sum, err);
    tenrec_value_drop(sum);
    tenrec_rref_drop(r);
    return st;
}

static tenrec_status return_reference(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_rref *r = NULL;
    struct tenrec_value v;
    tenrec_status st = remote_sum(call, 1, &r, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_rref(r);
    st = tenrec_call_return(call, &v, err);
    tenrec_rref_drop(r);
    return st;
}

/* Answers with a list of the references, which are dropped. */
static tenrec_status give_list(struct tenrec_call *call, struct tenrec_rref **r, size_t n,
                               tenrec_error *err)
{
    struct tenrec_value item[8], list;
    tenrec_status st;

    for (size_t i = 0; i < n; i++)
        item[i] = tenrec_value_rref(r[i]);
    list = tenrec_value_array(item, n);
    st = tenrec_call_return(call, &list, err);
    for (size_t i = 0; i < n; i++)
        tenrec_rref_drop(r[i]);
    return st;
}

static tenrec_status nested_references(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_rref *r[2] = { NULL, NULL };
    tenrec_status st = remote_sum(call, 1, &r[0], err);

    (void)arg;
    if (st == TENREC_OK)
        st = remote_sum(call, 2, &r[1], err);
    if (st == TENREC_OK)
        return give_list(call, r, 2, err);
    tenrec_rref_drop(r[0]);
    return st;
}

static tenrec_status forward(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(call);
    struct tenrec_worker_info me;
    struct tenrec_rref *r, *next = NULL;
    struct tenrec_value more[2];
    char name[TENREC_NAME_MAX + 1];
    int64_t ttl;
    size_t world = 0;
    tenrec_status st = tenrec_call_get_args(call, err, "ri", &r, &ttl);

    (void)arg;
    if (st == TENREC_OK && ttl == 0) {
        next = tenrec_rref_share(r);
        return give_list(call, &next, 1, err);
    }
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(w, NULL, &me, err);
    if (st == TENREC_OK)
        st = tenrec_worker_get_infos(w, NULL, 0, &world, err);
    if (st != TENREC_OK)
        return st;
    more[0] = tenrec_value_rref(r);
    more[1] = tenrec_value_int(ttl - 1);
    tenrec_test_worker_name((me.id + 1) % (int32_t)world, name);
    st = tenrec_remote(w, name, "forward", more, 2, NULL, &next, err);
    return st == TENREC_OK ? give_list(call, &next, 1, err) : st;
}

static tenrec_status new_counters(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(call);
    struct tenrec_rref *r[8];
    const struct tenrec_value *list;
    struct tenrec_worker_info me;
    size_t n, made = 0;
    const struct tenrec_value *args = tenrec_call_args(call, &n);
    tenrec_status st = tenrec_value_unpack(args, n, err, "v", &list);

    (void)arg;
    if (st == TENREC_OK && (list->type != TENREC_VALUE_ARRAY || list->n > 8))
        st = tenrec_fail(err, TENREC_EINVAL, "expected a list of at most 8");
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(w, NULL, &me, err);
    for (uint64_t i = 0; st == TENREC_OK && i < list->n; i++) {
        st = tenrec_remote(w, me.name, "counter_new", &list->u.array[i], 1, NULL, &r[i], err);
        made += st == TENREC_OK;
    }
    if (st == TENREC_OK)
        return give_list(call, r, made, err);
    while (made > 0)
        tenrec_rref_drop(r[--made]);
    return st;
}

static tenrec_status is_confirmed(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value v;
    struct tenrec_rref *r;
    tenrec_status st = tenrec_call_get_args(call, err, "r", &r);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_bool(tenrec_rref_confirmed_by_owner(r));
    return tenrec_call_return(call, &v, err);
}

/* What `keep` keeps, by the rank of its worker. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenrec_rref *kept[FUNCTIONS_WORLD];

static tenrec_status keep(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_rref *r = NULL, *old;
    struct tenrec_worker_info me;
    tenrec_status st = arg ? tenrec_call_get_args(call, err, "r", &r) : TENREC_OK;

    if (st == TENREC_OK)
        st = tenrec_get_worker_info(tenrec_call_worker(call), NULL, &me, err);
    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&kept_lock);
    old = kept[me.id];
    kept[me.id] = r ? tenrec_rref_share(r) : NULL;
    pthread_mutex_unlock(&kept_lock);
    tenrec_rref_drop(old);
    return TENREC_OK;
}

tenrec_status references_setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err)
{
    static char yes[] = "";
    const struct {
        const char *name;
        tenrec_function_fn *fn;
        void *arg;
        uint32_t flags;
    } list[] = {
        { "counter_new", counter_new, NULL, TENREC_POOL },
        { "slow_counter_new", slow_counter_new, NULL, TENREC_POOL },
        { "counter_add", counter_add, NULL, TENREC_POOL },
        { "slow_counter_add", counter_add, yes, TENREC_POOL },
        { "counter_add_later", counter_add_later, NULL, TENREC_LATER },
        { "rows", rows, NULL, TENREC_POOL },
        { "add_to_reference", add_to_reference, NULL, TENREC_POOL },
        { "sum_of_references", sum_of_references, NULL, TENREC_POOL },
        { "nested_add_of", nested_add_of, NULL, TENREC_POOL },
        { "nested_references", nested_references, NULL, TENREC_POOL },
        { "return_reference", return_reference, NULL, TENREC_POOL },
        { "forward", forward, NULL, TENREC_POOL },
        { "new_counters", new_counters, NULL, TENREC_POOL },
        { "is_confirmed", is_confirmed, NULL, TENREC_POOL },
        { "keep", keep, yes, TENREC_POOL },
        { "forget", keep, NULL, TENREC_POOL },
    };
    tenrec_status st = functions_setup(w, rank, arg, err);

    for (size_t i = 0; i < sizeof list / sizeof list[0] && st == TENREC_OK; i++)
        st = tenrec_worker_register_function(w, list[i].name, list[i].fn, list[i].arg,
                                             list[i].flags, err);
    return st;
}

/* ---- for tests ----------------------------------------------------------------------------- */

struct tenrec_rref *remote(const struct tenrec_test *t, const char *to, const char *function,
                           const struct tenrec_value *args, size_t n)
{
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    assert_status(tenrec_remote(t->worker, to, function, args, n, NULL, &r, &err), &err);
    return r;
}

struct tenrec_rref *remote_int(const struct tenrec_test *t, const char *to, const char *function,
                               int64_t i)
{
    const struct tenrec_value arg = tenrec_value_int(i);

    return remote(t, to, function, &arg, 1);
}

struct tenrec_value *fetch(struct tenrec_rref *r)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(tenrec_rref_to_here(r, NULL, &got, &err), &err);
    return got;
}

struct tenrec_rref *remote_ones(const struct tenrec_test *t, const char *to, int64_t n,
                                int64_t more)
{
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_int(more) };
    struct tenrec_rref *r = remote(t, to, "add", args, 2);

    tenrec_tensor_drop(ones);
    return r;
}
