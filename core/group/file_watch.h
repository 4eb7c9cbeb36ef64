/* SPDX-License-Identifier: Apache-2.0 */
/* file_watch.h - wakes who waits for a file to change. What other hosts write
 * into a shared file system wakes nobody, so it is to be looked at now and then
 * anyway. */
#ifndef TENREC_GROUP_FILE_WATCH_H
#define TENREC_GROUP_FILE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Used by one thread. */
struct file_watch {
    int fd; /* -1: the kernel cannot tell */
};

void file_watch_open(struct file_watch *w);
void file_watch_close(struct file_watch *w);

/* Begins to watch the file that is at `path` now. False: nothing will wake. */
bool file_watch_arm(struct file_watch *w, const char *path);

/* Waits for a change since file_watch_arm, at most `ms` milliseconds. True: there was one. */
bool file_watch_wait(struct file_watch *w, int ms);

#endif
