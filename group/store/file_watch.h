/* SPDX-License-Identifier: Apache-2.0 */
/* file_watch.h - wakes a thread that waits for a file to change. A write by another host into a
 * shared file system wakes no thread, so the waiter polls as well. */
#ifndef TENREC_STORE_FILE_WATCH_H
#define TENREC_STORE_FILE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

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
