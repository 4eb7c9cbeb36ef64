/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/file_log.h"

#include "core/base/file.h"
#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static tenrec_status lock_file(const struct file_log *l, int how, tenrec_error *err)
{
    while (flock(l->fd, how | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot lock the file");
        return tenrec_fail(err, TENREC_EAGAIN, "the file is locked by another process");
    }
    return TENREC_OK;
}

void file_log_close(struct file_log *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* Drops all keys when the path leads to another file now. */
static tenrec_status notice_change(struct file_log *l, const struct stat *st, tenrec_error *err)
{
    if (l->dev == st->st_dev && l->ino == st->st_ino && l->offset <= st->st_size)
        return TENREC_OK;
    store_table_finish(&l->table);
    l->changes++;
    l->offset = 0;
    l->dev = st->st_dev;
    l->ino = st->st_ino;
    if (store_table_init(&l->table, 0) != TENREC_OK)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for its keys");
    return TENREC_OK;
}

/* A user that can write to the file can redirect this group's workers, and a user that can
 * read it can lock it, and so stop the group: torch's FileStore makes such files. */
static tenrec_status check_rights(struct file_log *l, const struct stat *st, tenrec_error *err)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return tenrec_fail(
            err, TENREC_EOS,
            "the file belongs to another user (uid %lu): remove it or choose another path",
            (unsigned long)st->st_uid);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return tenrec_fail(
            err, TENREC_EOS,
            "the file can be written by others (mode %04o): chmod 600 it if it is yours",
            (unsigned)(st->st_mode & 07777));
    if ((st->st_mode & (S_IRGRP | S_IROTH)) && !l->warned_open) {
        log_line(
            TENREC_LOG_WARN, "store",
            "file store \"%s\" can be read, and locked, by others (mode %04o): chmod 600 the file",
            l->path, (unsigned)(st->st_mode & 07777));
        l->warned_open = true;
    }
    return TENREC_OK;
}

/* Opens and locks the file. Opens again when the file was unlinked in between: a write to it would
 * be lost. */
static tenrec_status open_locked(struct file_log *l, bool writing, tenrec_error *err)
{
    int flags = (writing ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct stat opened, named;
    tenrec_status st;

    for (;;) {
        l->fd = open(l->path, flags, 0600);
        if (l->fd < 0 && errno == ENOENT && !writing)
            return TENREC_OK; /* nothing there: no keys */
        if (l->fd < 0)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot open the file");
        if ((st = lock_file(l, writing ? LOCK_EX : LOCK_SH, err)) != TENREC_OK)
            goto err_close;
        if (fstat(l->fd, &opened) != 0 || !S_ISREG(opened.st_mode)) {
            st = tenrec_fail(err, TENREC_EINVAL, "not a regular file");
            goto err_close;
        }
        if ((st = check_rights(l, &opened, err)) != TENREC_OK)
            goto err_close;
        if (lstat(l->path, &named) == 0 && named.st_ino == opened.st_ino &&
            named.st_dev == opened.st_dev)
            break;
        file_log_close(l);
    }
    if ((st = notice_change(l, &opened, err)) != TENREC_OK)
        goto err_close;
    return TENREC_OK;

err_close:
    file_log_close(l);
    return st;
}

/* Applies one record; a key with '-' in front removes the rest of it. */
static tenrec_status apply_record(struct store_table *t, struct bytes_slice key,
                                  struct bytes_slice value)
{
    bool removes = key.len > 0 && key.data[0] == '-';
    struct store_entry *e;
    tenrec_status st;

    if (removes)
        key = (struct bytes_slice){ key.data + 1, key.len - 1 };
    if ((st = store_table_make(t, key, &e)) != TENREC_OK)
        return st;
    if (removes)
        store_entry_unset(t, e);
    else
        st = store_entry_set(t, e, value);
    store_table_tidy(t, e);
    return st;
}

static struct bytes_slice read_span(struct bytes_reader *r)
{
    const size_t len = bytes_read_u32(r);

    return (struct bytes_slice){ bytes_read(r, len), len };
}

/* Parses records; *ret_used is where the last whole one ends. */
static tenrec_status apply_records(struct store_table *t, const uint8_t *data, size_t len,
                                   size_t *ret_used)
{
    struct bytes_reader r = { .data = data, .len = len };
    tenrec_status st = TENREC_OK;

    *ret_used = 0;
    for (;;) {
        const struct bytes_slice key = read_span(&r), value = read_span(&r);

        if (!r.bad)
            st = apply_record(t, key, value);
        if (r.bad || st != TENREC_OK)
            return st;
        *ret_used = r.at;
    }
}

/* Reads `want` bytes from the offset that this store has reached. */
static tenrec_status read_rest(const struct file_log *l, size_t want, struct bytes *ret,
                               tenrec_error *err)
{
    ssize_t r = 0;

    while (ret->len < want && bytes_room(ret, want - ret->len)) {
        r = pread(l->fd, ret->data + ret->len, want - ret->len, l->offset + (off_t)ret->len);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return tenrec_fail_errno(err, TENREC_EOS, r < 0 ? errno : EIO, "cannot read the file");
        bytes_grew(ret, (size_t)r);
    }
    if (ret->failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu bytes of the file", want);
    return TENREC_OK;
}

/* Reads the records that other processes have appended. */
static tenrec_status catch_up(struct file_log *l, tenrec_error *err)
{
    struct bytes b = { 0 };
    struct stat now = { 0 };
    size_t used = 0, want;
    tenrec_status st;

    if (l->fd < 0) /* no file */
        return notice_change(l, &now, err);
    if (fstat(l->fd, &now) != 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot read the file");
    want = (size_t)(now.st_size - l->offset);
    if (want == 0)
        return TENREC_OK;
    if ((st = read_rest(l, want, &b, err)) == TENREC_OK &&
        (st = apply_records(&l->table, b.data, b.len, &used)) != TENREC_OK)
        tenrec_fail(err, st, "no memory for its keys");
    bytes_free(&b);
    l->changes++;
    l->offset += (off_t)used;
    /* Writers hold the lock until a record is whole. */
    if (st == TENREC_OK && used < want)
        st = tenrec_fail(
            err, TENREC_EPROTOCOL,
            "the file is damaged at byte %lld: not a store, or a writer died; remove it",
            (long long)l->offset);
    return st;
}

tenrec_status file_log_open(struct file_log *l, bool writing, tenrec_error *err)
{
    tenrec_status st = open_locked(l, writing, err);

    if (st == TENREC_OK && (st = catch_up(l, err)) != TENREC_OK)
        file_log_close(l);
    return st;
}

/* Writes a record behind the others, whole or not at all. Returns 0 or an errno. */
static int log_write(const struct file_log *l, const struct bytes *b)
{
    struct file_limit held;
    size_t at = 0;
    int reason = 0;

    file_limit_hold(&held);
    while (at < b->len && !reason) {
        const ssize_t r = pwrite(l->fd, b->data + at, b->len - at, l->offset + (off_t)at);

        if (r > 0)
            at += (size_t)r;
        else if (r == 0 || errno != EINTR)
            reason = r == 0 ? EIO : errno;
    }
    file_limit_release(&held);
    /* Half a record would make the file unreadable for all processes. */
    if (reason && ftruncate(l->fd, l->offset) != 0)
        reason = errno;
    return reason;
}

tenrec_status file_log_append(struct file_log *l, const char *sign, const char *key,
                              struct bytes_slice value, tenrec_error *err)
{
    size_t key_len = strlen(sign) + strlen(key);
    struct bytes b = { 0 };
    tenrec_status st = TENREC_OK;
    int reason;

    bytes_add_u32(&b, (uint32_t)key_len);
    bytes_add(&b, sign, strlen(sign));
    bytes_add(&b, key, strlen(key));
    bytes_add_u32(&b, (uint32_t)value.len);
    bytes_add(&b, value.data, value.len);
    if (b.failed) {
        bytes_free(&b);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a record");
    }
    reason = log_write(l, &b);
    if (reason) {
        bytes_free(&b);
        return file_limit_fail(err, reason, "cannot write to the file");
    }
    st = apply_record(&l->table, (struct bytes_slice){ b.data + 4, key_len },
                      (struct bytes_slice){ b.data + 8 + key_len, value.len });
    if (st == TENREC_OK) {
        l->offset += (off_t)b.len;
        l->changes++;
    } else {
        tenrec_fail(err, st, "no memory for key \"%s\"", key);
    }
    bytes_free(&b);
    return st;
}

bool file_log_has_news(const struct file_log *l, uint64_t seen)
{
    struct stat st = { 0 };

    if (stat(l->path, &st) != 0)
        st.st_size = 0;
    return l->changes != seen || st.st_size != l->offset || st.st_ino != l->ino;
}
