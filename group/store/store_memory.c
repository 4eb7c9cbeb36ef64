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
    struct store_backend backend;
    struct memory_store *next; /* guarded by registry_lock */
    pthread_mutex_t lock;      /* guards table */
    pthread_cond_t changed;
    struct store_table table;
};

/* The stores of the process by name: the only mutable global here. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory_store *registry;

static struct bytes_span value_span(const struct store_value *v)
{
    return (struct bytes_span){ v->data, v->len };
}

static tenrec_status fail_full(struct store_backend *b, tenrec_status st, const char *key,
                               tenrec_error *err)
{
    if (st == TENREC_EINVAL)
        return tenrec_fail(err, st, "cannot add to key \"%s\" of %s: no number, or beyond 64 bits",
                           key, b->name);
    if (st == TENREC_ETOOBIG)
        return tenrec_fail(err, st, "%s is full: it holds 1 GiB", b->name);
    return tenrec_fail(err, st, "no memory for key \"%s\" of %s", key, b->name);
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

static tenrec_status memory_set(struct store_backend *b, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;
    struct store_entry *e;
    tenrec_status st = memory_begin(m, key, &e);

    (void)deadline_ns;
    if (st == TENREC_OK) {
        st = store_entry_set(&m->table, e, (struct bytes_span){ data, len });
        memory_end(m, e);
    }
    return st == TENREC_OK ? st : fail_full(b, st, key, err);
}

static tenrec_status memory_add(struct store_backend *b, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;
    struct store_entry *e;
    tenrec_status st = memory_begin(m, key, &e);

    (void)deadline_ns;
    if (st == TENREC_OK) {
        st = store_entry_add(&m->table, e, delta, ret);
        memory_end(m, e);
    }
    return st == TENREC_OK ? st : fail_full(b, st, key, err);
}

static tenrec_status memory_compare_set(struct store_backend *b, const char *key,
                                        const struct store_value *expected,
                                        const struct store_value *desired, uint64_t deadline_ns,
                                        struct store_value *ret, tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;
    struct store_entry *e;
    tenrec_status st = memory_begin(m, key, &e);
    struct bytes_span now;
    bool changed;

    (void)deadline_ns;
    if (st == TENREC_OK) {
        st = store_entry_compare_set(&m->table, e, value_span(expected), value_span(desired), &now,
                                     &changed);
        if (st == TENREC_OK) {
            ret->len = now.len;
            if (!(ret->data = bytes_copy(now.data, now.len)))
                st = TENREC_ENOMEM;
        }
        memory_end(m, e);
    }
    return st == TENREC_OK ? st : fail_full(b, st, key, err);
}

static tenrec_status memory_get(struct store_backend *b, const char *const *keys, size_t n,
                                uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                                tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;
    tenrec_status st;
    bool timely = true;
    size_t left;

    pthread_mutex_lock(&m->lock);
    while ((left = store_table_missing(&m->table, keys, n, ret_missing)) > 0 && timely)
        timely = clock_cond_wait(&m->changed, &m->lock, deadline_ns);
    st = left > 0 ? TENREC_ETIMEDOUT : TENREC_OK;
    for (size_t i = 0; st == TENREC_OK && ret && i < n; i++) {
        struct store_entry *e = store_table_find(&m->table, bytes_of_text(keys[i]));
        ret[i].len = e->value_len;
        if (!(ret[i].data = bytes_copy(e->value, e->value_len)))
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the value of \"%s\"", keys[i]);
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

static tenrec_status memory_check(struct store_backend *b, const char *const *keys, size_t n,
                                  uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;

    (void)deadline_ns;
    (void)err;
    pthread_mutex_lock(&m->lock);
    store_table_missing(&m->table, keys, n, ret_missing);
    pthread_mutex_unlock(&m->lock);
    return TENREC_OK;
}

static tenrec_status memory_delete(struct store_backend *b, const char *const *keys, size_t n,
                                   uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;

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

static tenrec_status memory_num_keys(struct store_backend *b, uint64_t deadline_ns, int64_t *ret,
                                     tenrec_error *err)
{
    struct memory_store *m = (struct memory_store *)b;

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

static void memory_destroy(struct store_backend *b, uint64_t deadline_ns)
{
    struct memory_store *m = (struct memory_store *)b;

    (void)deadline_ns;
    pthread_mutex_lock(&registry_lock);
    LL_DELETE(registry, m);
    pthread_mutex_unlock(&registry_lock);
    memory_free(m);
}

static const struct store_ops memory_ops = {
    .set = memory_set,
    .add = memory_add,
    .compare_set = memory_compare_set,
    .get = memory_get,
    .check = memory_check,
    .delete_keys = memory_delete,
    .num_keys = memory_num_keys,
    .destroy = memory_destroy,
};

static struct memory_store *memory_new_store(const char *name)
{
    struct memory_store *m = memory_new(1, sizeof *m);

    if (!m || store_table_init(&m->table, MAX_STORE) != TENREC_OK) {
        free(m);
        return NULL;
    }
    m->backend.ops = &memory_ops;
    atomic_init(&m->backend.refs, 1);
    snprintf(m->backend.name, sizeof m->backend.name, "in-process store \"%s\"", name);
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->changed);
    return m;
}

/* Acquires a reference, unless the last one is gone and the store is about to be destroyed. */
static bool memory_acquire(struct memory_store *m)
{
    unsigned refs = atomic_load(&m->backend.refs);

    while (refs > 0)
        if (atomic_compare_exchange_weak(&m->backend.refs, &refs, refs + 1))
            return true;
    return false;
}

tenrec_status store_memory_open(const char *name, struct tenrec_store **ret, tenrec_error *err)
{
    struct memory_store *m;
    char whole[sizeof m->backend.name];

    if (!*name || strlen(name) > 127)
        return tenrec_fail(err, TENREC_EINVAL,
                           "in-process store \"%.32s\" needs a name of 1 to 127 characters", name);
    snprintf(whole, sizeof whole, "in-process store \"%s\"", name);
    pthread_mutex_lock(&registry_lock);
    for (m = registry; m; m = m->next)
        if (strcmp(m->backend.name, whole) == 0 && memory_acquire(m))
            break;
    if (!m && (m = memory_new_store(name)))
        LL_PREPEND(registry, m);
    pthread_mutex_unlock(&registry_lock);
    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for in-process store \"%s\"", name);
    return store_handle_new(&m->backend, "/", ret, err);
}
