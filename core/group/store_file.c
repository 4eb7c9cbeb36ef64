/* The file store: one file to which records are appended under flock, as c10d's
 * FileStore does it; the last record of a key counts. Every call opens the
 * file, so that one that was removed and made again is noticed. */
#include "base/clock.h"
#include "base/memory.h"
#include "group/store.h"
#include "group/store_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLEANUP_KEY "cleanup/"   /* how many have left */
#define REFCOUNT_KEY "refcount/" /* how many have it open (torch 2 and this) */
#define POLL_FIRST_MS 1
#define POLL_MOST_MS 10
#define LOCK_FIRST_US 50
#define LOCK_MOST_US 1000
#define GRACE_MS 1000 /* that a call with a shorter limit gets for the lock */
#define CLOSE_MS 1000

struct file_store {
    struct store_backend backend;
    uint32_t num_workers;
    pthread_mutex_t lock;     /* guards what follows */
    struct store_table table; /* what was read up to `offset` */
    uint64_t changes;         /* how often that changed */
    off_t offset;
    dev_t dev;
    ino_t ino;
    char path[]; /* absolute or as given */
};

static struct span text_span(const char *text)
{
    return (struct span){ (const uint8_t *)text, strlen(text) };
}

static void sleep_ms(uint64_t ms, uint64_t deadline_ns)
{
    int left = clock_left_ms(deadline_ns);

    usleep((useconds_t)((left >= 0 && (uint64_t)left < ms ? (uint64_t)left : ms) * 1000));
}

/* flock knows no deadline: it is asked again and again. */
static tenrec_status lock_file(const struct file_store *f, int fd, int how, uint64_t deadline_ns,
                               tenrec_error *err)
{
    useconds_t gap_us = LOCK_FIRST_US;

    while (flock(fd, how | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot lock %s", f->backend.name);
        if (clock_passed(deadline_ns))
            return tenrec_fail(err, TENREC_EPEER_LOST, "%s stays locked by another process",
                               f->backend.name);
        usleep(gap_us);
        gap_us = gap_us * 2 > LOCK_MOST_US ? LOCK_MOST_US : gap_us * 2;
    }
    return TENREC_OK;
}

/* Forgets what was read when the file at the path is another one. */
static tenrec_status notice_change(struct file_store *f, const struct stat *st, tenrec_error *err)
{
    if (f->dev == st->st_dev && f->ino == st->st_ino && f->offset <= st->st_size)
        return TENREC_OK;
    store_table_finish(&f->table);
    f->changes++;
    f->offset = 0;
    f->dev = st->st_dev;
    f->ino = st->st_ino;
    if (store_table_init(&f->table, 0) != TENREC_OK)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %s", f->backend.name);
    return TENREC_OK;
}

/* Opens and locks the file. A file that was unlinked between the two is opened
 * again: what is written to it would be lost. */
static tenrec_status open_locked(struct file_store *f, bool writing, uint64_t deadline_ns, int *ret,
                                 tenrec_error *err)
{
    int flags = (writing ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct stat opened, named;
    tenrec_status st;
    int fd;

    for (;;) {
        fd = open(f->path, flags, 0644);
        if (fd < 0 && errno == ENOENT && !writing) {
            *ret = -1; /* nothing there: no keys */
            return TENREC_OK;
        }
        if (fd < 0)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot open %s", f->backend.name);
        if ((st = lock_file(f, fd, writing ? LOCK_EX : LOCK_SH, deadline_ns, err)) != TENREC_OK)
            goto err_fd;
        if (fstat(fd, &opened) != 0 || !S_ISREG(opened.st_mode)) {
            st = tenrec_fail(err, TENREC_EINVAL, "%s is no regular file", f->backend.name);
            goto err_fd;
        }
        if (lstat(f->path, &named) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev)
            break;
        close(fd);
    }
    if ((st = notice_change(f, &opened, err)) != TENREC_OK)
        goto err_fd;
    *ret = fd;
    return TENREC_OK;

err_fd:
    close(fd);
    return st;
}

/* Takes over one record; a key with '-' in front removes the rest of it. */
static tenrec_status take_record(struct store_table *t, struct span key, struct span value)
{
    bool removes = key.len > 0 && key.data[0] == '-';
    struct store_entry *e;
    tenrec_status st = TENREC_OK;

    if (removes)
        key = (struct span){ key.data + 1, key.len - 1 };
    if (!(e = store_table_make(t, key)))
        return TENREC_ENOMEM;
    if (removes)
        store_entry_unset(t, e);
    else
        st = store_entry_set(t, e, value);
    store_table_tidy(t, e);
    return st;
}

/* Parses records; *ret_used is where the last whole one ends. */
static tenrec_status take_records(struct store_table *t, const uint8_t *data, size_t len,
                                  size_t *ret_used)
{
    size_t at = 0, key_len, value_len;
    tenrec_status st;

    *ret_used = 0;
    while (len - at >= 4) {
        key_len = bytes_get_u32(data + at);
        if (key_len > len - at - 4 || len - at - 4 - key_len < 4)
            break;
        value_len = bytes_get_u32(data + at + 4 + key_len);
        if (value_len > len - at - 8 - key_len)
            break;
        st = take_record(t, (struct span){ data + at + 4, key_len },
                         (struct span){ data + at + 8 + key_len, value_len });
        if (st != TENREC_OK)
            return st;
        at += 8 + key_len + value_len;
        *ret_used = at;
    }
    return TENREC_OK;
}

/* Reads `want` bytes from where this store stands. */
static tenrec_status read_rest(const struct file_store *f, int fd, size_t want, struct bytes *ret,
                               tenrec_error *err)
{
    ssize_t r = 0;

    while (ret->len < want && bytes_room(ret, want - ret->len)) {
        r = pread(fd, ret->data + ret->len, want - ret->len, f->offset + (off_t)ret->len);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return tenrec_fail_errno(err, TENREC_EOS, r < 0 ? errno : EIO, "cannot read %s",
                                     f->backend.name);
        bytes_grew(ret, (size_t)r);
    }
    if (ret->failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu bytes of %s", want,
                           f->backend.name);
    return TENREC_OK;
}

/* Takes over what others have written since. */
static tenrec_status catch_up(struct file_store *f, int fd, tenrec_error *err)
{
    struct bytes b = { 0 };
    struct stat now = { 0 };
    size_t used = 0, want;
    tenrec_status st;

    if (fd < 0) /* no file */
        return notice_change(f, &now, err);
    if (fstat(fd, &now) != 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot read %s", f->backend.name);
    want = (size_t)(now.st_size - f->offset);
    if (want == 0)
        return TENREC_OK;
    if ((st = read_rest(f, fd, want, &b, err)) == TENREC_OK &&
        (st = take_records(&f->table, b.data, b.len, &used)) != TENREC_OK)
        tenrec_fail(err, st, "no memory for the keys of %s", f->backend.name);
    bytes_free(&b);
    f->changes++;
    f->offset += (off_t)used;
    /* Writers hold the lock until a record is whole. */
    if (st == TENREC_OK && used < want)
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "%s is damaged at byte %lld: no store, or a writer died; remove it",
                         f->backend.name, (long long)f->offset);
    return st;
}

/* Appends one record and takes it over. */
static tenrec_status append(struct file_store *f, int fd, const char *sign, const char *key,
                            struct span value, tenrec_error *err)
{
    size_t key_len = strlen(sign) + strlen(key), at = 0;
    struct bytes b = { 0 };
    tenrec_status st = TENREC_OK;
    int reason;

    bytes_add_u32(&b, (uint32_t)key_len);
    bytes_add(&b, sign, strlen(sign));
    bytes_add(&b, key, strlen(key));
    bytes_add_u32(&b, (uint32_t)value.len);
    bytes_add(&b, value.data, value.len);
    if (b.failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a record of %s", f->backend.name);
    while (at < b.len) {
        ssize_t r = pwrite(fd, b.data + at, b.len - at, f->offset + (off_t)at);
        if (r > 0) {
            at += (size_t)r;
        } else if (r == 0 || errno != EINTR) {
            reason = r == 0 ? EIO : errno;
            /* Half a record would make the file unreadable for everybody. */
            if (ftruncate(fd, f->offset) != 0)
                reason = errno;
            bytes_free(&b);
            return tenrec_fail_errno(err, TENREC_EOS, reason, "cannot write to %s",
                                     f->backend.name);
        }
    }
    st = take_record(&f->table, (struct span){ b.data + 4, key_len },
                     (struct span){ b.data + 8 + key_len, value.len });
    if (st == TENREC_OK) {
        f->offset += (off_t)b.len;
        f->changes++;
    } else {
        tenrec_fail(err, st, "no memory for key \"%s\" of %s", key, f->backend.name);
    }
    bytes_free(&b);
    return st;
}

static uint64_t later(uint64_t deadline_ns, uint64_t least_ms)
{
    uint64_t least = clock_deadline_ms(least_ms);

    return deadline_ns > least ? deadline_ns : least;
}

/* Locks store and file and reads what is new. */
static tenrec_status begin(struct file_store *f, bool writing, uint64_t deadline_ns, int *ret_fd,
                           tenrec_error *err)
{
    tenrec_status st;

    pthread_mutex_lock(&f->lock);
    st = open_locked(f, writing, later(deadline_ns, GRACE_MS), ret_fd, err);
    if (st == TENREC_OK && (st = catch_up(f, *ret_fd, err)) != TENREC_OK && *ret_fd >= 0)
        close(*ret_fd);
    if (st != TENREC_OK)
        pthread_mutex_unlock(&f->lock);
    return st;
}

/* Closing the file gives its lock back. */
static void end(struct file_store *f, int fd)
{
    if (fd >= 0)
        close(fd);
    pthread_mutex_unlock(&f->lock);
}

static tenrec_status file_set(struct store_backend *b, const char *key, const void *data,
                              size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    int fd;
    tenrec_status st = begin(f, true, deadline_ns, &fd, err);

    if (st != TENREC_OK)
        return st;
    st = append(f, fd, "", key, (struct span){ data, len }, err);
    end(f, fd);
    return st;
}

/* The value of a key that was read, or nothing. */
static struct span value_of(const struct file_store *f, const char *key)
{
    const struct store_entry *e = store_table_find(&f->table, text_span(key));

    return e && e->present ? (struct span){ e->value, e->value_len } : (struct span){ NULL, 0 };
}

static tenrec_status add_locked(struct file_store *f, int fd, const char *key, int64_t delta,
                                int64_t *ret, tenrec_error *err)
{
    struct span old = value_of(f, key);
    int64_t n = 0;
    char text[32];
    int len;
    tenrec_status st;

    if ((old.data && !store_number(old, &n)) || __builtin_add_overflow(n, delta, &n))
        return tenrec_fail(err, TENREC_EINVAL,
                           "cannot add to key \"%s\" of %s: no number, or beyond 64 bits", key,
                           f->backend.name);
    len = snprintf(text, sizeof text, "%lld", (long long)n);
    st = append(f, fd, "", key, (struct span){ (const uint8_t *)text, (size_t)len }, err);
    if (st == TENREC_OK)
        *ret = n;
    return st;
}

static tenrec_status file_add(struct store_backend *b, const char *key, int64_t delta,
                              uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    int fd;
    tenrec_status st = begin(f, true, deadline_ns, &fd, err);

    if (st != TENREC_OK)
        return st;
    st = add_locked(f, fd, key, delta, ret, err);
    end(f, fd);
    return st;
}

static tenrec_status file_compare_set(struct store_backend *b, const char *key,
                                      const struct store_value *expected,
                                      const struct store_value *desired, uint64_t deadline_ns,
                                      struct store_value *ret, tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    struct span old, now;
    int fd;
    tenrec_status st = begin(f, true, deadline_ns, &fd, err);

    if (st != TENREC_OK)
        return st;
    old = value_of(f, key);
    now = old.data ? old : (struct span){ expected->data, expected->len };
    if (old.len == expected->len &&
        (!old.data || old.len == 0 || memcmp(old.data, expected->data, old.len) == 0)) {
        now = (struct span){ desired->data, desired->len };
        st = append(f, fd, "", key, now, err);
    }
    if (st == TENREC_OK && !(ret->data = bytes_copy(now.data, now.len)))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for key \"%s\" of %s", key, b->name);
    ret->len = now.len;
    end(f, fd);
    return st;
}

/* How many keys are missing, and which. */
static size_t find_missing(const struct file_store *f, const char *const *keys, size_t n,
                           bool *ret_missing)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        ret_missing[i] = !store_entry_there(store_table_find(&f->table, text_span(keys[i])));
        count += ret_missing[i];
    }
    return count;
}

static tenrec_status copy_values(const struct file_store *f, const char *const *keys, size_t n,
                                 struct store_value *ret, tenrec_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct span value = value_of(f, keys[i]);
        ret[i].len = value.len;
        if (!(ret[i].data = bytes_copy(value.data, value.len)))
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for key \"%s\" of %s", keys[i],
                               f->backend.name);
    }
    return TENREC_OK;
}

/* Whether somebody has written since `seen`: another process, or another
 * thread through this store. Cheaper than to lock the file. */
static bool has_news(struct file_store *f, uint64_t seen)
{
    struct stat st = { 0 };
    bool news;

    if (stat(f->path, &st) != 0)
        st.st_size = 0;
    pthread_mutex_lock(&f->lock);
    news = f->changes != seen || st.st_size != f->offset || st.st_ino != f->ino;
    pthread_mutex_unlock(&f->lock);
    return news;
}

static tenrec_status file_get(struct store_backend *b, const char *const *keys, size_t n,
                              uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                              tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    uint64_t gap_ms = POLL_FIRST_MS, seen;
    size_t left = n, before = n;
    tenrec_status st;
    int fd;

    for (;;) {
        if ((st = begin(f, false, deadline_ns, &fd, err)) != TENREC_OK)
            return st;
        seen = f->changes;
        left = find_missing(f, keys, n, ret_missing);
        if (left == 0 && ret)
            st = copy_values(f, keys, n, ret, err);
        end(f, fd);
        if (left == 0)
            return st;
        if (left < before)
            gap_ms = POLL_FIRST_MS; /* others are coming: look often */
        before = left;
        do {
            if (clock_passed(deadline_ns))
                return TENREC_ETIMEDOUT;
            sleep_ms(gap_ms, deadline_ns);
            gap_ms = gap_ms * 2 > POLL_MOST_MS ? POLL_MOST_MS : gap_ms * 2;
        } while (!has_news(f, seen));
    }
}

static tenrec_status file_check(struct store_backend *b, const char *const *keys, size_t n,
                                uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    int fd;
    tenrec_status st = begin(f, false, deadline_ns, &fd, err);

    if (st != TENREC_OK)
        return st;
    find_missing(f, keys, n, ret_missing);
    end(f, fd);
    return TENREC_OK;
}

static tenrec_status file_delete(struct store_backend *b, const char *const *keys, size_t n,
                                 uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    int fd;
    tenrec_status st = begin(f, true, deadline_ns, &fd, err);

    if (st != TENREC_OK)
        return st;
    *ret = 0;
    for (size_t i = 0; st == TENREC_OK && i < n; i++) {
        if (!store_entry_there(store_table_find(&f->table, text_span(keys[i]))))
            continue;
        st = append(f, fd, "-", keys[i], (struct span){ NULL, 0 }, err);
        ++*ret;
    }
    end(f, fd);
    return st;
}

static tenrec_status file_num_keys(struct store_backend *b, uint64_t deadline_ns, int64_t *ret,
                                   tenrec_error *err)
{
    struct file_store *f = (struct file_store *)b;
    int fd;
    tenrec_status st = begin(f, false, deadline_ns, &fd, err);

    if (st != TENREC_OK)
        return st;
    *ret = (int64_t)f->table.n_keys;
    end(f, fd);
    return TENREC_OK;
}

/* Counts this one out; the last of all removes the file. */
static void leave(struct file_store *f)
{
    int64_t open_now = 0, left = 0;
    int fd;

    if (begin(f, true, clock_deadline_ms(CLOSE_MS), &fd, NULL) != TENREC_OK)
        return;
    if (add_locked(f, fd, REFCOUNT_KEY, -1, &open_now, NULL) == TENREC_OK &&
        add_locked(f, fd, CLEANUP_KEY, 1, &left, NULL) == TENREC_OK && open_now <= 0 &&
        left >= (int64_t)f->num_workers)
        unlink(f->path);
    end(f, fd);
}

static void file_free(struct file_store *f)
{
    store_table_finish(&f->table);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void file_destroy(struct store_backend *b)
{
    struct file_store *f = (struct file_store *)b;

    if (f->num_workers)
        leave(f);
    file_free(f);
}

static const struct store_ops file_ops = {
    .set = file_set,
    .add = file_add,
    .compare_set = file_compare_set,
    .get = file_get,
    .check = file_check,
    .delete_keys = file_delete,
    .num_keys = file_num_keys,
    .destroy = file_destroy,
};

tenrec_status store_file_open(const char *path, uint32_t num_workers, uint64_t deadline_ns,
                              struct tenrec_store **ret, tenrec_error *err)
{
    struct file_store *f;
    tenrec_status st;
    int64_t n;
    int fd;

    if (!*path)
        return tenrec_fail(err, TENREC_EINVAL, "file:// needs a path behind it");
    f = memory_new(1, sizeof *f + strlen(path) + 1);
    if (!f || store_table_init(&f->table, 0) != TENREC_OK) {
        free(f);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    }
    f->backend.ops = &file_ops;
    atomic_init(&f->backend.refs, 1);
    snprintf(f->backend.name, sizeof f->backend.name, "file store \"%s\"", path);
    pthread_mutex_init(&f->lock, NULL);
    memcpy(f->path, path, strlen(path) + 1);
    /* Also shows now, and not at the first key, that the file can be used. */
    if ((st = begin(f, true, deadline_ns, &fd, err)) == TENREC_OK) {
        if (num_workers)
            st = add_locked(f, fd, REFCOUNT_KEY, 1, &n, err);
        end(f, fd);
    }
    if (st != TENREC_OK) {
        file_free(f);
        return st;
    }
    f->num_workers = num_workers;
    return store_handle_new(&f->backend, "/", ret, err);
}
