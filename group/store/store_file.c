/* SPDX-License-Identifier: Apache-2.0 */
/* store_file.c - the file store. Every call opens the file, and so notices a new file at the path.
 * A write by this host wakes a wait, which also polls, at growing gaps, for other hosts' writes. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/file_log.h"
#include "group/store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEANUP_KEY "cleanup/"   /* number of openers that have left */
#define REFCOUNT_KEY "refcount/" /* number of openers (torch 2 and this) */
#define POLL_FIRST_US 1000
#define POLL_MOST_US 10000   /* where the kernel reports no changes */
#define WATCH_MOST_US 100000 /* where it reports changes of this host */
#define LOCK_FIRST_US 50
#define LOCK_MOST_US 1000

struct file_store {
    char name[300];
    uint32_t num_workers;
    pthread_mutex_t lock; /* guards log */
    struct file_log log;
    char path[];
};

/* Locks store and file and reads new records. flock has no deadline, so a locked file is polled;
 * between the attempts other threads of this process may use the store, as their deadlines may be
 * shorter. */
static tenrec_status file_begin(struct file_store *f, bool writing, uint64_t deadline_ns,
                                tenrec_error *err)
{
    struct backoff pause = { LOCK_FIRST_US, LOCK_MOST_US };
    tenrec_status st;

    deadline_ns = store_answer_ns(deadline_ns);
    for (;;) {
        pthread_mutex_lock(&f->lock);
        st = file_log_open(&f->log, writing, err);
        if (st == TENREC_OK)
            return st;
        pthread_mutex_unlock(&f->lock);
        if (st != TENREC_EAGAIN)
            return st;
        if (!backoff_take(&pause, deadline_ns))
            return tenrec_fail(err, TENREC_EPEER_LOST, "the file stays locked by another process");
    }
}

static void file_end(struct file_store *f)
{
    file_log_close(&f->log);
    pthread_mutex_unlock(&f->lock);
}

static tenrec_status file_set(struct tenrec_plugin_store *s, const char *key, const void *data,
                              size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    struct file_store *f = s->impl;
    tenrec_status st = file_begin(f, true, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    st = file_log_append(&f->log, "", key, (struct bytes_slice){ data, len }, err);
    file_end(f);
    return st;
}

/* Returns the value of a key; .data is NULL without a value. */
static struct bytes_slice value_of(const struct file_store *f, const char *key)
{
    const struct store_entry *e = store_table_find(&f->log.table, bytes_of_text(key));

    return e && e->present ? (struct bytes_slice){ e->value, e->value_len }
                           : (struct bytes_slice){ NULL, 0 };
}

static tenrec_status add_locked(struct file_store *f, const char *key, int64_t delta, int64_t *ret,
                                tenrec_error *err)
{
    struct bytes_slice old = value_of(f, key);
    int64_t n = 0;
    char text[32];
    int len;
    tenrec_status st;

    if ((old.data && !bytes_number(old, &n)) || __builtin_add_overflow(n, delta, &n))
        return tenrec_fail(err, TENREC_EINVAL,
                           "cannot add to key \"%s\": no number, or beyond 64 bits", key);
    len = snprintf(text, sizeof text, "%lld", (long long)n);
    st = file_log_append(&f->log, "", key,
                         (struct bytes_slice){ (const uint8_t *)text, (size_t)len }, err);
    if (st == TENREC_OK)
        *ret = n;
    return st;
}

static tenrec_status file_add(struct tenrec_plugin_store *s, const char *key, int64_t delta,
                              uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct file_store *f = s->impl;
    tenrec_status st = file_begin(f, true, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    st = add_locked(f, key, delta, ret, err);
    file_end(f);
    return st;
}

static tenrec_status file_compare_set(struct tenrec_plugin_store *s, const char *key,
                                      const void *expected, size_t expected_len,
                                      const void *desired, size_t desired_len, uint64_t deadline_ns,
                                      tenrec_store_value_fn *fn, void *arg, tenrec_error *err)
{
    struct file_store *f = s->impl;
    struct bytes_slice old, now;
    tenrec_status st = file_begin(f, true, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    old = value_of(f, key);
    now = old.data ? old : (struct bytes_slice){ expected, expected_len };
    if (old.len == expected_len &&
        (!old.data || old.len == 0 || memcmp(old.data, expected, old.len) == 0)) {
        now = (struct bytes_slice){ desired, desired_len };
        st = file_log_append(&f->log, "", key, now, err);
    }
    if (st == TENREC_OK)
        st = fn(arg, 0, now.data, now.len, err);
    file_end(f);
    return st;
}

static bool file_has_news(struct file_store *f, uint64_t seen)
{
    bool news;

    pthread_mutex_lock(&f->lock);
    news = file_log_has_news(&f->log, seen);
    pthread_mutex_unlock(&f->lock);
    return news;
}

/* Waits until the file has records beyond `seen`. Returns false at the deadline. */
static bool file_await_news(struct file_store *f, struct file_watch *watch, uint64_t seen,
                            struct backoff *pause, uint64_t deadline_ns)
{
    for (;;) {
        /* Arm before the check, so that no change in between is missed. */
        const bool watched = file_watch_arm(watch, f->path);
        uint64_t us;

        if (file_has_news(f, seen))
            return true;
        pause->most_us = watched ? WATCH_MOST_US : POLL_MOST_US;
        if ((us = backoff_next_us(pause, clock_now_ns(), deadline_ns)) == 0)
            return false;
        if (!watched)
            backoff_us(us);
        else if (file_watch_wait(watch, (int)((us + 999) / 1000)))
            backoff_us(POLL_FIRST_US); /* other processes may be about to write, too */
    }
}

/* Passes the values if all keys are present; else reports and counts the missing keys. */
static tenrec_status file_poll(struct file_store *f, const char *const *keys, uint32_t n,
                               uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                               bool *ret_missing, size_t *ret_left, uint64_t *ret_seen,
                               tenrec_error *err)
{
    tenrec_status st = file_begin(f, false, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    *ret_seen = f->log.changes;
    *ret_left = store_table_missing(&f->log.table, keys, n, ret_missing);
    for (uint32_t i = 0; st == TENREC_OK && *ret_left == 0 && fn && i < n; i++) {
        const struct bytes_slice value = value_of(f, keys[i]);
        st = fn(arg, i, value.data, value.len, err);
    }
    file_end(f);
    return st;
}

static tenrec_status file_get(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                              uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg,
                              bool *ret_missing, tenrec_error *err)
{
    struct file_store *f = s->impl;
    struct backoff pause = { POLL_FIRST_US, POLL_MOST_US };
    uint64_t seen = 0;
    struct file_watch watch = { .fd = -1 };
    size_t left = n, before = n;
    tenrec_status st = file_poll(f, keys, n, deadline_ns, fn, arg, ret_missing, &left, &seen, err);

    if (st != TENREC_OK || left == 0 || clock_passed(deadline_ns))
        return st == TENREC_OK && left ? TENREC_ETIMEDOUT : st;
    file_watch_open(&watch);
    do {
        if (!file_await_news(f, &watch, seen, &pause, deadline_ns)) {
            st = TENREC_ETIMEDOUT;
            break;
        }
        st = file_poll(f, keys, n, deadline_ns, fn, arg, ret_missing, &left, &seen, err);
        if (left < before)
            pause.gap_us = POLL_FIRST_US; /* others are joining: poll often */
        before = left;
    } while (st == TENREC_OK && left);
    file_watch_close(&watch);
    return st;
}

static tenrec_status file_check(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                                uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    struct file_store *f = s->impl;
    tenrec_status st = file_begin(f, false, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    store_table_missing(&f->log.table, keys, n, ret_missing);
    file_end(f);
    return TENREC_OK;
}

static tenrec_status file_remove(struct tenrec_plugin_store *s, const char *const *keys, uint32_t n,
                                 uint64_t deadline_ns, uint32_t *ret, tenrec_error *err)
{
    struct file_store *f = s->impl;
    tenrec_status st = file_begin(f, true, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    *ret = 0;
    for (size_t i = 0; st == TENREC_OK && i < n; i++) {
        if (!store_entry_there(store_table_find(&f->log.table, bytes_of_text(keys[i]))))
            continue;
        st = file_log_append(&f->log, "-", keys[i], (struct bytes_slice){ NULL, 0 }, err);
        ++*ret;
    }
    file_end(f);
    return st;
}

static tenrec_status file_num_keys(struct tenrec_plugin_store *s, uint64_t deadline_ns,
                                   int64_t *ret, tenrec_error *err)
{
    struct file_store *f = s->impl;
    tenrec_status st = file_begin(f, false, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    *ret = (int64_t)f->log.table.n_keys;
    file_end(f);
    return TENREC_OK;
}

/* Counts this process as left; the last of all removes the file. */
static void file_leave(struct file_store *f, uint64_t deadline_ns)
{
    int64_t open_now = 0, left = 0;

    if (file_begin(f, true, deadline_ns, NULL) != TENREC_OK)
        return;
    if (add_locked(f, REFCOUNT_KEY, -1, &open_now, NULL) == TENREC_OK &&
        add_locked(f, CLEANUP_KEY, 1, &left, NULL) == TENREC_OK && open_now <= 0 &&
        left >= (int64_t)f->num_workers)
        unlink(f->path);
    file_end(f);
}

static void file_free(struct file_store *f)
{
    store_table_finish(&f->log.table);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static const char *file_name(struct tenrec_plugin_store *s)
{
    return ((const struct file_store *)s->impl)->name;
}

static void file_close(struct tenrec_plugin_store *s, uint64_t deadline_ns)
{
    struct file_store *f = s->impl;

    if (f->num_workers)
        file_leave(f, deadline_ns);
    file_free(f);
}

static const struct tenrec_store_ops file_ops = {
    .size = sizeof file_ops,
    .lacks = TENREC_STORE_LACKS_EXPIRY,
    .name = file_name,
    .set = file_set,
    .add = file_add,
    .compare_set = file_compare_set,
    .get = file_get,
    .check = file_check,
    .remove = file_remove,
    .num_keys = file_num_keys,
    .close = file_close,
};

static struct file_store *file_new(const char *path)
{
    struct file_store *f = memory_new(1, sizeof *f + strlen(path) + 1);

    if (!f || store_table_init(&f->log.table, 0) != TENREC_OK) {
        free(f);
        return NULL;
    }
    snprintf(f->name, sizeof f->name, "file store \"%s\"", path);
    pthread_mutex_init(&f->lock, NULL);
    memcpy(f->path, path, strlen(path) + 1);
    f->log.path = f->path;
    return f;
}

tenrec_status store_file_init(const struct tenrec_store_init *in, struct tenrec_plugin_store *s,
                              tenrec_error *err)
{
    const struct store_setup *setup = in->options;
    struct file_store *f;
    tenrec_status st;
    int64_t n;

    if (!*in->url)
        return tenrec_fail(err, TENREC_EINVAL, "file:// needs a path behind it");
    if (!(f = file_new(in->url)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    /* Reports an unusable file at once, not at the first key. */
    if ((st = file_begin(f, true, in->deadline_ns, err)) == TENREC_OK) {
        if (setup->num_workers)
            st = add_locked(f, REFCOUNT_KEY, 1, &n, err);
        file_end(f);
    }
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "%s", f->name);
        file_free(f);
        return st;
    }
    f->num_workers = setup->num_workers;
    s->ops = &file_ops;
    s->impl = f;
    return TENREC_OK;
}
