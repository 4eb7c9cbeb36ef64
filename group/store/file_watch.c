/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/file_log.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

void file_watch_open(struct file_watch *w)
{
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void file_watch_close(struct file_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

/* Arming the same file again changes nothing; a new file at the path is watched again. */
bool file_watch_arm(struct file_watch *w, const char *path)
{
    return w->fd >= 0 &&
           inotify_add_watch(w->fd, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF) >=
               0;
}

bool file_watch_wait(struct file_watch *w, int ms)
{
    struct pollfd p = { .fd = w->fd, .events = POLLIN };
    char events[4096];
    bool changed;

    changed = poll(&p, 1, ms) > 0;
    while (w->fd >= 0 && read(w->fd, events, sizeof events) > 0)
        ;
    return changed;
}
