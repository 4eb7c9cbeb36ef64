/* SPDX-License-Identifier: Apache-2.0 */
/* drawer - a store that only this process reaches. The smallest whole store plugin:
 * drawer://NAME is shared by all stores of that name. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <tenrec/store_plugin.h>
#include <time.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/"

struct drawer_options {
    int64_t most;
};

struct note {
    struct note *next;
    char *key;
    void *data;
    size_t len;
};

struct drawer {
    struct drawer *next;
    unsigned users; /* guarded by `lock`, as all that follows */
    struct note *note;
    int64_t n, most;
    char name[128];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct drawer *drawers;

static const char *drawer_name(struct tenrec_plugin_store *self)
{
    struct drawer *d = self->impl;

    return d->name;
}

static struct note **find(struct drawer *d, const char *key)
{
    struct note **at;

    for (at = &d->note; *at && strcmp((*at)->key, key) != 0; at = &(*at)->next)
        ;
    return at;
}

static void note_free(struct note *n)
{
    free(n->key);
    free(n->data);
    free(n);
}

/* With the lock held. Keeps the former value when it fails. */
static tenrec_status put(struct drawer *d, const char *key, const void *data, size_t len,
                         tenrec_error *err)
{
    struct note **at = find(d, key), *n = *at;
    void *copy = malloc(len ? len : 1);

    if (!n && d->n == d->most) {
        free(copy);
        return tenrec_fail(err, TENREC_ETOOBIG, "it has %" PRId64 " keys already", d->n);
    }
    if (!n && (n = calloc(1, sizeof *n)) && !(n->key = strdup(key))) {
        free(n);
        n = NULL;
    }
    if (!n || !copy) {
        if (n && !*at)
            note_free(n);
        free(copy);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for key \"%s\"", key);
    }
    if (len)
        memcpy(copy, data, len);
    free(n->data);
    n->data = copy;
    n->len = len;
    d->n += !*at;
    *at = n;
    pthread_cond_broadcast(&changed);
    return TENREC_OK;
}

static tenrec_status drawer_set(struct tenrec_plugin_store *self, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st;

    (void)deadline_ns;
    pthread_mutex_lock(&lock);
    st = put(self->impl, key, data, len, err);
    pthread_mutex_unlock(&lock);
    return st;
}

static bool read_number(const struct note *n, int64_t *ret)
{
    char text[32] = "", *end;

    if (n->len == 0 || n->len >= sizeof text)
        return false;
    memcpy(text, n->data, n->len);
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static tenrec_status drawer_add(struct tenrec_plugin_store *self, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    int64_t sum = 0;
    struct note *n;
    tenrec_status st;
    char text[32];

    (void)deadline_ns;
    pthread_mutex_lock(&lock);
    n = *find(self->impl, key);
    if ((n && !read_number(n, &sum)) || __builtin_add_overflow(sum, delta, &sum)) {
        st = tenrec_fail(err, TENREC_EINVAL, "cannot add to key \"%s\": no number, or too large",
                         key);
    } else {
        snprintf(text, sizeof text, "%" PRId64, sum);
        st = put(self->impl, key, text, strlen(text), err);
    }
    pthread_mutex_unlock(&lock);
    if (st == TENREC_OK)
        *ret = sum;
    return st;
}

static tenrec_status drawer_compare_set(struct tenrec_plugin_store *self, const char *key,
                                        const void *expected, size_t expected_len,
                                        const void *desired, size_t desired_len,
                                        uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                        tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    struct note *n;

    (void)deadline_ns;
    pthread_mutex_lock(&lock);
    n = *find(self->impl, key);
    if (n ? n->len == expected_len && (!expected_len || !memcmp(n->data, expected, expected_len))
          : expected_len == 0)
        st = put(self->impl, key, desired, desired_len, err);
    n = *find(self->impl, key);
    if (st == TENREC_OK)
        st = fn(arg, 0, n ? n->data : expected, n ? n->len : expected_len, err);
    pthread_mutex_unlock(&lock);
    return st;
}

static uint32_t find_missing(struct drawer *d, const char *const *keys, uint32_t n,
                             bool *ret_missing)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += ret_missing[i] = !*find(d, keys[i]);
    return count;
}

static tenrec_status drawer_get(struct tenrec_plugin_store *self, const char *const *keys,
                                uint32_t n, uint64_t deadline_ns, tenrec_store_value_fn *fn,
                                void *arg, bool *ret_missing, tenrec_error *err)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                              .tv_nsec = (long)(deadline_ns % 1000000000u) };
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&lock);
    while (st == TENREC_OK && find_missing(self->impl, keys, n, ret_missing) > 0) {
        if (deadline_ns == TENREC_STORE_NEVER)
            pthread_cond_wait(&changed, &lock);
        else if (pthread_cond_timedwait(&changed, &lock, &until) == ETIMEDOUT)
            st = TENREC_ETIMEDOUT;
    }
    /* A key may have come at the last moment. */
    if (st == TENREC_ETIMEDOUT && find_missing(self->impl, keys, n, ret_missing) == 0)
        st = TENREC_OK;
    for (uint32_t i = 0; st == TENREC_OK && fn && i < n; i++) {
        const struct note *note = *find(self->impl, keys[i]);
        st = fn(arg, i, note->data, note->len, err);
    }
    pthread_mutex_unlock(&lock);
    return st;
}

static tenrec_status drawer_check(struct tenrec_plugin_store *self, const char *const *keys,
                                  uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                  tenrec_error *err)
{
    (void)deadline_ns, (void)err;
    pthread_mutex_lock(&lock);
    find_missing(self->impl, keys, n, ret_missing);
    pthread_mutex_unlock(&lock);
    return TENREC_OK;
}

static tenrec_status drawer_remove(struct tenrec_plugin_store *self, const char *const *keys,
                                   uint32_t n, uint64_t deadline_ns, uint32_t *ret,
                                   tenrec_error *err)
{
    struct drawer *d = self->impl;

    (void)deadline_ns, (void)err;
    *ret = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n; i++) {
        struct note **at = find(d, keys[i]), *old = *at;
        if (!old)
            continue;
        *at = old->next;
        note_free(old);
        d->n--;
        ++*ret;
    }
    pthread_mutex_unlock(&lock);
    return TENREC_OK;
}

static tenrec_status drawer_num_keys(struct tenrec_plugin_store *self, uint64_t deadline_ns,
                                     int64_t *ret, tenrec_error *err)
{
    struct drawer *d = self->impl;

    (void)deadline_ns, (void)err;
    pthread_mutex_lock(&lock);
    *ret = d->n;
    pthread_mutex_unlock(&lock);
    return TENREC_OK;
}

static void drawer_close(struct tenrec_plugin_store *self, uint64_t deadline_ns)
{
    struct drawer *d = self->impl, **at;

    (void)deadline_ns;
    pthread_mutex_lock(&lock);
    if (--d->users == 0) {
        for (at = &drawers; *at != d; at = &(*at)->next)
            ;
        *at = d->next;
        for (struct note *n = d->note, *next; n; n = next) {
            next = n->next;
            note_free(n);
        }
        free(d);
    }
    pthread_mutex_unlock(&lock);
}

static const struct tenrec_store_ops drawer_ops = {
    .size = sizeof drawer_ops,
    .lacks = TENREC_STORE_LACKS_EXPIRY,
    .name = drawer_name,
    .set = drawer_set,
    .add = drawer_add,
    .compare_set = drawer_compare_set,
    .get = drawer_get,
    .check = drawer_check,
    .remove = drawer_remove,
    .num_keys = drawer_num_keys,
    .close = drawer_close,
};

static void make_changed(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
}

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    const struct drawer_options *o = in->options;
    const char *name = strstr(in->url, "://") + 3;
    const size_t len = strlen(name);
    char whole[sizeof((struct drawer *)0)->name];
    struct drawer *d;

    /* The name appears in errors, a password may not be: no '@'. */
    if (len < 1 || len > 64 || strspn(name, NAME_CHARACTERS) != len)
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected drawer://NAME, of 1 to 64 letters, digits, '_', '-' or '/'");
    snprintf(whole, sizeof whole, "drawer \"%s\"", name);
    pthread_once(&once, make_changed);
    pthread_mutex_lock(&lock);
    for (d = drawers; d && strcmp(d->name, whole) != 0; d = d->next)
        ;
    if (!d && (d = calloc(1, sizeof *d))) {
        snprintf(d->name, sizeof d->name, "%s", whole);
        d->most = o->most;
        d->next = drawers;
        drawers = d;
    }
    if (d)
        d->users++;
    pthread_mutex_unlock(&lock);
    if (!d)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a drawer");
    self->ops = &drawer_ops;
    self->impl = d;
    return TENREC_OK;
}

static const struct tenrec_option options[] = {
    { .key = "most",
      .type = TENREC_OPT_INT,
      .offset = offsetof(struct drawer_options, most),
      .def = "1000000",
      .min = 1,
      .max = INT64_MAX,
      .help = "Keys that find room in a drawer." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_STORE_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct drawer_options),
    .name = "drawer",
    .version = "1.0",
    .summary = "Keeps keys in the memory of this process.",
};
