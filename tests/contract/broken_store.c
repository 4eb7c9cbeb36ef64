/* SPDX-License-Identifier: Apache-2.0 */
/* broken_store.c - the store drawer, breaking the rule that TENREC_TEST_BREAKS names. `tenrec
 * conformance` must see each. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <tenrec/store_plugin.h>
#include <time.h>
#include <unistd.h>

static _Atomic(const char *) broken;      /* the same for all stores of a process */
static _Thread_local const char *quietly; /* the operation under way */
static _Atomic unsigned impatient;        /* gets whose deadline is near */

static bool breaks(const char *what)
{
    return strcmp(broken, what) == 0;
}

/* A drawer that forgets to wake after one of its operations. */
static int broken_broadcast(pthread_cond_t *c)
{
    return quietly && breaks(quietly) ? 0 : pthread_cond_broadcast(c);
}

tenrec_init_store_fn drawer_init;
#define pthread_cond_broadcast broken_broadcast
#define tenrec_init_store drawer_init
#include "../store/drawer.c"
#undef pthread_cond_broadcast
#undef tenrec_init_store

static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;
static void *volatile leaked;
static _Atomic int opens, sets, opening;

/* Milliseconds, longer where the tests are. */
static void broken_sleep(unsigned ms)
{
    const char *slow = getenv("TENREC_TEST_SLOW");
    const unsigned all = ms * (unsigned)(slow && atoi(slow) > 0 ? atoi(slow) : 1);

    poll(NULL, 0, (int)all);
}

static void *broken_thread(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/* ---- changes ---- */

static tenrec_status broken_set(struct tenrec_plugin_store *self, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    char cut[256];
    tenrec_status st;

    sets++;
    if (breaks("large values") && len > 100000)
        len = 100000;
    if (breaks("binary values"))
        len = strnlen(data ? data : "", len);
    if (breaks("long keys")) {
        snprintf(cut, sizeof cut, "%s", key);
        key = cut;
    }
    if (breaks("replace")) {
        bool missing;

        drawer_check(self, &key, 1, deadline_ns, &missing, err);
        if (!missing)
            return TENREC_OK;
    }
    if (breaks("serial"))
        pthread_mutex_lock(&serial);
    quietly = "set wakes";
    st = drawer_set(self, key, data, len, deadline_ns, err);
    quietly = NULL;
    if (breaks("serial"))
        pthread_mutex_unlock(&serial);
    return st;
}

/* The number under `key`, without the lock; `missing` if there is none. */
static int64_t broken_number(struct tenrec_plugin_store *self, const char *key, int64_t missing)
{
    struct note *n;
    int64_t number = missing;

    pthread_mutex_lock(&lock);
    if ((n = *find(self->impl, key)) != NULL && !read_number(n, &number))
        number = missing;
    pthread_mutex_unlock(&lock);
    return number;
}

static tenrec_status broken_add(struct tenrec_plugin_store *self, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    char text[32];
    tenrec_status st;

    if (breaks("add from 1") && broken_number(self, key, -77) == -77)
        delta++;
    if (breaks("add is atomic") || breaks("words") || breaks("overflow") || breaks("double")) {
        int64_t sum = broken_number(self, key, 0);

        if (breaks("add is atomic"))
            broken_sleep(1);
        if (!breaks("words") && !breaks("overflow") && !breaks("add is atomic"))
            sum = (int64_t)((double)sum + (double)delta);
        else if (__builtin_add_overflow(sum, delta, &sum) && !breaks("overflow"))
            return tenrec_fail(err, TENREC_EINVAL, "too large");
        snprintf(text, sizeof text, "%" PRId64, sum);
        *ret = sum;
        return drawer_set(self, key, text, strlen(text), deadline_ns, err);
    }
    quietly = "add wakes";
    st = drawer_add(self, key, delta, deadline_ns, ret, err);
    quietly = NULL;
    return st;
}

/* What a value function of the core is called through. */
struct broken_values {
    tenrec_store_value_fn *fn;
    void *arg;
    uint32_t n;
};

static tenrec_status broken_forgiving(void *arg, uint32_t i, const void *data, size_t len,
                                      tenrec_error *err)
{
    const struct broken_values *v = arg;

    (void)v->fn(v->arg, i, data, len, err);
    return TENREC_OK;
}

static tenrec_status broken_reversed(void *arg, uint32_t i, const void *data, size_t len,
                                     tenrec_error *err)
{
    const struct broken_values *v = arg;

    return v->fn(v->arg, v->n - 1 - i, data, len, err);
}

static tenrec_status broken_twice(void *arg, uint32_t i, const void *data, size_t len,
                                  tenrec_error *err)
{
    const struct broken_values *v = arg;
    tenrec_status st = v->fn(v->arg, i, data, len, err);

    return st ? st : v->fn(v->arg, i, data, len, err);
}

static tenrec_status broken_compare_set(struct tenrec_plugin_store *self, const char *key,
                                        const void *expected, size_t expected_len,
                                        const void *desired, size_t desired_len,
                                        uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                        tenrec_error *err)
{
    struct broken_values v = { fn, arg, 1 };
    struct note *n;
    tenrec_status st;
    bool matches = false;

    if (breaks("value error")) {
        fn = broken_forgiving;
        arg = &v;
    }
    pthread_mutex_lock(&lock);
    n = *find(self->impl, key);
    if (breaks("swap always"))
        matches = true;
    else if (breaks("swap by prefix"))
        matches = n && n->len >= expected_len && !memcmp(n->data, expected, expected_len);
    else if (breaks("swap compares no NUL"))
        matches = n && strncmp(n->data, expected, expected_len) == 0;
    else if (breaks("swap is atomic"))
        matches = n ? n->len == expected_len && !memcmp(n->data, expected, expected_len)
                    : expected_len == 0;
    pthread_mutex_unlock(&lock);
    if (breaks("swap is atomic"))
        broken_sleep(1);
    if (matches) {
        st = drawer_set(self, key, desired, desired_len, deadline_ns, err);
        return st ? st : fn(arg, 0, desired, desired_len, err);
    }
    if (breaks("swap when missing") && !n && expected_len == 0)
        return fn(arg, 0, "", 0, err);
    quietly = "compare_set wakes";
    st = drawer_compare_set(self, key, expected, expected_len, desired, desired_len, deadline_ns,
                            fn, arg, err);
    quietly = NULL;
    return st;
}

/* ---- reading ---- */

static bool broken_passed(uint64_t deadline_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >= deadline_ns;
}

/* As a busy server, which a near deadline leaves no time to answer: no fault. */
static bool broken_late(uint64_t deadline_ns)
{
    return breaks("nothing, late") && broken_passed(deadline_ns - 1000000000u) && ++impatient % 4;
}

/* Passes the values of the keys that exist, unless all do. */
static void broken_pass(struct tenrec_plugin_store *self, const char *const *keys, uint32_t n,
                        const struct broken_values *v)
{
    bool missing[64] = { false };
    tenrec_error err;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; find_missing(self->impl, keys, n, missing) > 0 && i < n; i++)
        if (!missing[i])
            v->fn(v->arg, i, (*find(self->impl, keys[i]))->data, (*find(self->impl, keys[i]))->len,
                  &err);
    pthread_mutex_unlock(&lock);
}

static uint64_t cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* Uses the processor for a while even where others leave it little before the deadline. */
static tenrec_status broken_busy(struct tenrec_plugin_store *self, const char *const *keys,
                                 uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                 tenrec_error *err)
{
    const uint64_t end_ms = cpu_ms() + 200;

    for (;;) {
        bool missing = false;

        drawer_check(self, keys, n, deadline_ns, ret_missing, err);
        for (uint32_t i = 0; i < n; i++)
            missing |= ret_missing[i];
        if (!missing)
            return TENREC_OK;
        if (broken_passed(deadline_ns) && cpu_ms() >= end_ms)
            return TENREC_ETIMEDOUT;
    }
}

static tenrec_status broken_get(struct tenrec_plugin_store *self, const char *const *keys,
                                uint32_t n, uint64_t deadline_ns, tenrec_store_value_fn *fn,
                                void *arg, bool *ret_missing, tenrec_error *err)
{
    struct broken_values v = { fn, arg, n };
    tenrec_status st = TENREC_OK;

    if (broken_late(deadline_ns))
        return tenrec_fail(err, TENREC_EPEER_LOST, "the server does not answer");
    if (breaks("value error") && fn)
        return drawer_get(self, keys, n, deadline_ns, broken_forgiving, &v, ret_missing, err);
    if (breaks("values reversed") && fn)
        return drawer_get(self, keys, n, deadline_ns, broken_reversed, &v, ret_missing, err);
    if (breaks("values twice") && fn)
        return drawer_get(self, keys, n, deadline_ns, broken_twice, &v, ret_missing, err);
    if (breaks("first key only"))
        n = 1;
    if (breaks("early"))
        deadline_ns = 1;
    if (breaks("never at its deadline") && broken_passed(deadline_ns)) {
        memset(ret_missing, true, n * sizeof *ret_missing);
        return TENREC_ETIMEDOUT;
    }
    if (breaks("values too early") && fn)
        broken_pass(self, keys, n, &v);
    if (breaks("busy"))
        st = broken_busy(self, keys, n, deadline_ns, ret_missing, err);
    if (breaks("serial"))
        pthread_mutex_lock(&serial);
    if (st == TENREC_OK)
        st = drawer_get(self, keys, n, deadline_ns, fn, arg, ret_missing, err);
    if (breaks("serial"))
        pthread_mutex_unlock(&serial);
    if (st == TENREC_ETIMEDOUT && breaks("late"))
        broken_sleep(300);
    if (st == TENREC_ETIMEDOUT && breaks("get tells"))
        memset(ret_missing, true, n * sizeof *ret_missing);
    if (st == TENREC_ETIMEDOUT && breaks("text"))
        return tenrec_fail(err, TENREC_ETIMEDOUT, "too late");
    return st;
}

static tenrec_status broken_check(struct tenrec_plugin_store *self, const char *const *keys,
                                  uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                  tenrec_error *err)
{
    if (breaks("check waits")) {
        drawer_get(self, keys, n, deadline_ns, NULL, NULL, ret_missing, err);
        return TENREC_OK;
    }
    if (breaks("check of one"))
        n = 1;
    return drawer_check(self, keys, n, deadline_ns, ret_missing, err);
}

static tenrec_status broken_remove(struct tenrec_plugin_store *self, const char *const *keys,
                                   uint32_t n, uint64_t deadline_ns, uint32_t *ret,
                                   tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (!breaks("remove"))
        st = drawer_remove(self, keys, n, deadline_ns, ret, err);
    if (breaks("remove") || breaks("remove counts"))
        *ret = n;
    return st;
}

static tenrec_status broken_num_keys(struct tenrec_plugin_store *self, uint64_t deadline_ns,
                                     int64_t *ret, tenrec_error *err)
{
    tenrec_status st = drawer_num_keys(self, deadline_ns, ret, err);

    if (breaks("num_keys"))
        *ret = sets;
    return st;
}

/* ---- life ---- */

static void broken_close(struct tenrec_plugin_store *self, uint64_t deadline_ns)
{
    struct drawer *d = self->impl;

    if (breaks("slow close"))
        broken_sleep(1200);
    if (breaks("keys go")) {
        pthread_mutex_lock(&lock);
        for (struct note *n; (n = d->note) != NULL; d->note = n->next, note_free(n), d->n--)
            ;
        pthread_mutex_unlock(&lock);
    }
    drawer_close(self, deadline_ns);
}

static char broken_told[200];

static const char *broken_name(struct tenrec_plugin_store *self)
{
    (void)self;
    return broken_told;
}

static const char *broken_address(struct tenrec_plugin_store *self)
{
    (void)self;
    return "localhost:6379";
}

static tenrec_status broken_begin(const char *url, struct tenrec_plugin_store *self,
                                  tenrec_error *err)
{
    pthread_t thread;

    if (breaks("thread"))
        pthread_create(&thread, NULL, broken_thread, NULL);
    if (breaks("descriptor") || (breaks("refusal leaks") && strlen(url) < 10))
        (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (breaks("memory"))
        leaked = malloc(24);
    if (breaks("server"))
        return tenrec_fail(err, TENREC_ECONNECT, "no server listens");
    if (breaks("password in the log"))
        self->host->log(self, TENREC_LOG_DEBUG, "opens %s", url);
    if (breaks("password in the error") && strchr(url, '@'))
        return tenrec_fail(err, TENREC_EINVAL, "cannot open %s", url);
    if (breaks("one at a time") && opening > 1)
        return tenrec_fail(err, TENREC_EAGAIN, "another open is under way");
    return TENREC_OK;
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    static struct tenrec_store_ops ops = { .size = sizeof ops,
                                           .name = drawer_name,
                                           .set = broken_set,
                                           .add = broken_add,
                                           .compare_set = broken_compare_set,
                                           .get = broken_get,
                                           .check = broken_check,
                                           .remove = broken_remove,
                                           .num_keys = broken_num_keys,
                                           .close = broken_close };
    struct tenrec_store_init own = *in;
    char url[100];
    tenrec_status st;

    broken = getenv("TENREC_TEST_BREAKS") ? getenv("TENREC_TEST_BREAKS") : "";
    if (breaks("password in the name") && strchr(in->url, '@'))
        own.url = "drawer://x";
    if (breaks("apart")) {
        snprintf(url, sizeof url, "drawer://x%d", opens++);
        own.url = url;
    }
    opening++;
    st = broken_begin(in->url, self, err);
    if (breaks("one at a time"))
        broken_sleep(5);
    opening--;
    if (st == TENREC_OK)
        st = drawer_init(&own, self, err);
    if (st && breaks("refusal without a text"))
        err->text[0] = '\0';
    if (st)
        return st;
    snprintf(broken_told, sizeof broken_told, "drawer%s", breaks("name") ? "\nof wood" : in->url);
    if (breaks("name") || breaks("password in the name"))
        ops.name = broken_name;
    if (breaks("slot"))
        ops.num_keys = NULL;
    if (breaks("lacks"))
        ops.lacks = TENREC_STORE_LACKS_COMPARE;
    if (breaks("address"))
        ops.address = broken_address;
    self->ops = &ops;
    return TENREC_OK;
}
