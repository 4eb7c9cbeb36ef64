/* SPDX-License-Identifier: Apache-2.0 */
/* store_memory.c - the in-process store: shared by its name among the workers of one process, for
 * tests and single-process groups. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/store.h"
#include "group/store/store_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define MAX_STORE ((size_t)1 << 30) /* bytes, as the TCP server's */

struct memory_store {
    struct memory_store *next; /* guarded by registry_lock, as refs */
    unsigned refs;
    char name[160];
    pthread_mutex_t lock; /* guards table */
    pthread_cond_t changed;
    struct store_table table;
};

/* The stores of the process by name: the only mutable global here. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory_store *registry;

static tenrec_status memory_explain(tenrec_status st, const char *key, tenrec_error *err)
{
    if (st == TENREC_EINVAL)
        return tenrec_fail(err, st, "cannot add to key \"%s\": no number, or beyond 64 bits", key);
    if (st == TENREC_ETOOBIG)
        return tenrec_fail(err, st, "the store is full: it holds 1 GiB");
    return tenrec_fail(err, st, "no memory for key \"%s\"", key);
}

/* Locks and finds the entry to change; not locked after an error. */
static tenrec_status memory_begin(struct memory_store *m, const char *key, struct store_entry **ret)
{
    tenrec_status st;

    pthread_mutex_lock(&m->lock);
    st = store_table_make(&m->table, bytes_of_text(key), ret);
    if (st != TENREC_OK)
        pthread_mutex_unlock(&m->lock);
    return st;
}

static void memory_end(struct memory_store *m, struct store_entry *e)
{
    store_table_tidy(&m->table, e);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

static tenrec_status memory_set(struct tenrec_plugin_store *s, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    struct memory_store *m = s->impl;
    struct store_entry *e;
    tenrec_status st = memory_begin(m, key, &e);

    (void)deadline_ns;
    if (st == TENREC_OK) {
        st = store_entry_set(&m->table, e, (struct bytes_slice){ data, len });
        memory_end(m, e);
    }
    return st == TENREC_OK ? st : memory_explain(st, key, err);
}

static tenrec_status memory_add(struct tenrec_plugin_store *s, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct memory_store *m = s->impl;
    struct store_entry *e;
    tenrec_status st = memory_begin(m, key, &e);

    (void)deadline_ns;
    if (st == TENREC_OK) {
        st = store_entry_add(&m->table, e, delta, ret);
        memory_end(m, e);
    }
    return st == TENREC_OK ? st : memory_explain(st, key, err);
}

static tenrec_status memory_compare_set(struct tenrec_plugin_store *s, const char *key,
                                        const void *expected, size_t expected_len,
                                        const void *desired, size_t desired_len,
                                        uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                        tenrec_error *err)
{
    struct memory_store *m = s->impl;
    struct store_entry *e;
    tenrec_status st = memory_begin(m, key, &e);
    struct bytes_slice now;
    bool changed;

    (void)deadline_ns;
    if (st == TENREC_OK) {
        st = store_entry_compare_set(&m->table, e, (struct bytes_slice){ expected, expected_len },
                                     (struct bytes_slice){ desired, desired_len }, &now, &changed);
        if (st == TENREC_OK)
            st = fn(arg, 0, now.data, now.len, err);
        memory_end(m, e);
    }
    return st == TENREC_OK ? st : memory_explain(st, key, err);
}

static tenrec_status memory_get(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                                uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                                bool *ret_missing, tenrec_error *err)
{
    struct memory_store *m = s->impl;
    tenrec_status st;
    bool timely = true;
    size_t left;

    pthread_mutex_lock(&m->lock);
    while ((left = store_table_missing(&m->table, keys, n, ret_missing)) > 0 && timely)
        timely = clock_cond_wait(&m->changed, &m->lock, deadline_ns);
    st = left > 0 ? TENREC_ETIMEDOUT : TENREC_OK;
    for (uint32_t i = 0; st == TENREC_OK && fn && i < n; i++) {
        struct store_entry *e = store_table_find(&m->table, bytes_of_text(keys[i]));
        st = fn(arg, i, e->value, e->value_len, err);
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

static tenrec_status memory_check(struct tenrec_plugin_store *s, const char *const *keys,
                                  uint32_t n, uint64_t deadline_ns, bool *ret_missing,
                                  tenrec_error *err)
{
    struct memory_store *m = s->impl;

    (void)deadline_ns;
    (void)err;
    pthread_mutex_lock(&m->lock);
    store_table_missing(&m->table, keys, n, ret_missing);
    pthread_mutex_unlock(&m->lock);
    return TENREC_OK;
}

static tenrec_status memory_remove(struct tenrec_plugin_store *s, const char *const *keys,
                                   uint32_t n, uint64_t deadline_ns, uint32_t *ret,
                                   tenrec_error *err)
{
    struct memory_store *m = s->impl;

    (void)deadline_ns;
    (void)err;
    *ret = 0;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < n; i++) {
        struct store_entry *e = store_table_find(&m->table, bytes_of_text(keys[i]));
        if (!e)
            continue;
        *ret += e->present;
        store_entry_unset(&m->table, e);
        store_table_tidy(&m->table, e);
    }
    pthread_mutex_unlock(&m->lock);
    return TENREC_OK;
}

static tenrec_status memory_num_keys(struct tenrec_plugin_store *s, uint64_t deadline_ns,
                                     int64_t *ret, tenrec_error *err)
{
    struct memory_store *m = s->impl;

    (void)deadline_ns;
    (void)err;
    pthread_mutex_lock(&m->lock);
    *ret = (int64_t)m->table.n_keys;
    pthread_mutex_unlock(&m->lock);
    return TENREC_OK;
}

static void memory_free(struct memory_store *m)
{
    store_table_finish(&m->table);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const char *memory_name(struct tenrec_plugin_store *s)
{
    return ((const struct memory_store *)s->impl)->name;
}

static void memory_close(struct tenrec_plugin_store *s, uint64_t deadline_ns)
{
    struct memory_store *m = s->impl;
    bool last;

    (void)deadline_ns;
    pthread_mutex_lock(&registry_lock);
    last = --m->refs == 0;
    if (last)
        LL_DELETE(registry, m);
    pthread_mutex_unlock(&registry_lock);
    if (last)
        memory_free(m);
}

static const struct tenrec_store_ops memory_ops = {
    .size = sizeof memory_ops,
    .lacks = TENREC_STORE_LACKS_EXPIRY,
    .name = memory_name,
    .set = memory_set,
    .add = memory_add,
    .compare_set = memory_compare_set,
    .get = memory_get,
    .check = memory_check,
    .remove = memory_remove,
    .num_keys = memory_num_keys,
    .close = memory_close,
};

static struct memory_store *memory_new_store(const char *name)
{
    struct memory_store *m = memory_new(1, sizeof *m);

    if (!m || store_table_init(&m->table, MAX_STORE) != TENREC_OK) {
        free(m);
        return NULL;
    }
    snprintf(m->name, sizeof m->name, "%s", name);
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->changed);
    return m;
}

tenrec_status store_memory_init(const struct tenrec_store_init *in, struct tenrec_plugin_store *s,
                                tenrec_error *err)
{
    struct memory_store *m;
    char name[sizeof m->name];

    if (!*in->url || strlen(in->url) > 127)
        return tenrec_fail(err, TENREC_EINVAL,
                           "in-process store \"%.32s\" needs a name of 1 to 127 characters",
                           in->url);
    snprintf(name, sizeof name, "in-process store \"%s\"", in->url);
    pthread_mutex_lock(&registry_lock);
    for (m = registry; m && strcmp(m->name, name) != 0; m = m->next)
        ;
    if (!m && (m = memory_new_store(name)))
        LL_PREPEND(registry, m);
    if (m)
        m->refs++;
    pthread_mutex_unlock(&registry_lock);
    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %s", name);
    s->ops = &memory_ops;
    s->impl = m;
    return TENREC_OK;
}
