/* SPDX-License-Identifier: Apache-2.0 */
/* file_log.h - the file of a file store: records appended under flock, of which
 * the last one of a key counts (c10d's FileStore):
 *
 *   u32 length, key, u32 length, value      a key "-x" removes x
 *
 * The caller locks it within the process. */
#ifndef TENREC_STORE_FILE_LOG_H
#define TENREC_STORE_FILE_LOG_H

#include "group/store/store_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct file_log {
    int fd;                   /* while open; -1: no file */
    struct store_table table; /* of the records up to `offset` */
    uint64_t changes;         /* how often that changed */
    off_t offset;
    dev_t dev; /* of the file that was read; the path may lead to another now */
    ino_t ino;
    const char *path; /* borrowed */
    bool warned_open; /* the warning that others may read the file was logged */
};

/* Opens the file (creates it when `writing`), locks it and reads new records; file_log_close
 * unlocks it. Without a file there are no keys. Does not wait: another process may hold the lock.
 *
 * errors: EAGAIN (locked by another), EOS, EINVAL (no regular file), EPROTOCOL (damaged), ENOMEM */
tenrec_status file_log_open(struct file_log *l, bool writing, tenrec_error *err);
void file_log_close(struct file_log *l);

/* Appends one record and applies it; `sign` is "-" to remove the key. */
tenrec_status file_log_append(struct file_log *l, const char *sign, const char *key,
                              struct bytes_slice value, tenrec_error *err);

/* Returns true if another process, or another thread through this log, has written since l->changes
 * was `seen`. Cheaper than locking the file. */
bool file_log_has_news(const struct file_log *l, uint64_t seen);

/* Wakes a thread that waits for a file to change. A write by another host into a shared file
 * system wakes no thread, so the waiter polls as well. */

/* Used by one thread. */
struct file_watch {
    int fd; /* -1: the kernel cannot watch */
};

void file_watch_open(struct file_watch *w);
void file_watch_close(struct file_watch *w);

/* Watches the file that is at `path` now. Returns false if the kernel cannot watch it. */
bool file_watch_arm(struct file_watch *w, const char *path);

/* Waits for a change since file_watch_arm, at most `ms` milliseconds. Returns true if there was a
 * change. */
bool file_watch_wait(struct file_watch *w, int ms);

#endif
