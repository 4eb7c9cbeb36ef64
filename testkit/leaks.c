/* SPDX-License-Identifier: Apache-2.0 */
#include <tenrec/observe.h>
#include <tenrec/store.h>

#include "testkit/leaks.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testkit/scale.h"

enum {
    CLOSED_MS = 1000,
    GONE_MS = 5000,    /* the kernel may list a joined thread for a while */
    KEPT_EVENTFDS = 64 /* Tenrec caches these for waiting threads */
};

static unsigned count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    unsigned n = 0;

    while (dir && (entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static void list_fds(unsigned char fd[LEAKS_FDS / 8])
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    memset(fd, 0, LEAKS_FDS / 8);
    while (dir && (entry = readdir(dir))) {
        long n = entry->d_name[0] == '.' ? -1 : strtol(entry->d_name, NULL, 10);
        if (n >= 0 && n < LEAKS_FDS && n != dirfd(dir))
            fd[n / 8] |= (unsigned char)(1 << n % 8);
    }
    if (dir)
        closedir(dir);
}

static void fd_target(int fd, char *ret, size_t room)
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, ret, room - 1);
    ret[n > 0 ? n : 0] = '\0';
}

/* Counts the fds opened since `before`; *ret_first is the smallest. */
static unsigned more_fds(const struct leaks *before, int *ret_first)
{
    unsigned char now[LEAKS_FDS / 8];
    unsigned n = 0, kept = 0;
    char target[128];

    list_fds(now);
    for (int i = LEAKS_FDS - 1; i >= 0; i--) {
        if (!(now[i / 8] & ~before->fd[i / 8] & 1 << i % 8))
            continue;
        fd_target(i, target, sizeof target);
        if (strcmp(target, "anon_inode:[eventfd]") == 0 && kept++ < KEPT_EVENTFDS)
            continue;
        *ret_first = i;
        n++;
    }
    return n;
}

/* Makes the fds and threads that the first event loop of a process makes for its lifetime. */
static void warm_up(void)
{
    static atomic_bool warm;
    struct tenrec_store_server *server = NULL;

    if (atomic_exchange(&warm, true))
        return;
    if (tenrec_store_server_new("127.0.0.1", 0, &server, NULL, NULL) == TENREC_OK)
        tenrec_store_server_drop(server);
}

void leaks_begin(struct leaks *l)
{
    warm_up();
    l->threads = count_threads();
    list_fds(l->fd);
}

tenrec_status leaks_check(const struct leaks *l, tenrec_error *err)
{
    const int64_t closed = scale_deadline(CLOSED_MS), gone = scale_deadline(GONE_MS);
    unsigned fds, threads;
    char target[128];
    int first = -1;

    do {
        threads = count_threads();
        fds = more_fds(l, &first);
    } while ((threads > l->threads && scale_moment(gone)) || (fds > 0 && scale_moment(closed)));
    if (fds == 0 && threads <= l->threads)
        return TENREC_OK;
    if (fds == 0)
        return tenrec_fail(err, TENREC_EBUSY, "%u threads are left", threads - l->threads);
    fd_target(first, target, sizeof target);
    return tenrec_fail(err, TENREC_EBUSY,
                       "%u file descriptors and %u threads are left; the first is %d (%s)", fds,
                       threads > l->threads ? threads - l->threads : 0, first, target);
}

int64_t leaks_number(const struct tenrec_value *info, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(info, key);

    return v && v->type == TENREC_VALUE_INT ? v->u.integer : -1;
}

void leaks_numbers(struct tenrec_worker *w, const char *const *keys, size_t n, int64_t *ret)
{
    struct tenrec_value *info = NULL;

    tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &info, NULL);
    for (size_t i = 0; i < n; i++)
        ret[i] = leaks_number(info, keys[i]);
    tenrec_value_drop(info);
}

tenrec_status leaks_check_worker(struct tenrec_worker *w, tenrec_error *err)
{
    static const char *const keys[] = { "agent.client_active_calls", "agent.server_active_calls" };
    int64_t n[2];

    leaks_numbers(w, keys, 2, n);
    if (n[0] < 0 || n[1] < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "the worker does not report %s",
                           keys[n[0] < 0 ? 0 : 1]);
    if (n[0] > 0)
        return tenrec_fail(err, TENREC_EBUSY, "%lld calls of the worker are outstanding",
                           (long long)n[0]);
    if (n[1] > 0)
        return tenrec_fail(err, TENREC_EBUSY, "%lld calls to the worker are not answered",
                           (long long)n[1]);
    return TENREC_OK;
}
