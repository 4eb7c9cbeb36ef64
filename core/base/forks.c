/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/forks.h"

#include "core/base/log.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t forks_seen;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards changes of the list */
static struct fork_hook *first;

/* Another thread of the parent may have been adding a hook: it is in the list whole, or not. */
static void forks_child(void)
{
    pthread_mutex_init(&lock, NULL);
    forks_seen++;
    for (const struct fork_hook *h = first; h; h = h->next)
        h->child();
}

static void forks_register(void)
{
    pthread_atfork(NULL, NULL, forks_child);
}

void forks_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, forks_register);
}

void forks_add(struct fork_hook *h)
{
    struct fork_hook **at = &first;

    forks_watch();
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&h->added, memory_order_relaxed)) {
        while (*at)
            at = &(*at)->next;
        *at = h;
        atomic_store_explicit(&h->added, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

void forks_end(const char *what)
{
    log_line(TENREC_LOG_WARN, "fork",
             "%s has returned in a forked child: its thread ends, as only the parent answers and "
             "serves; let such a child end with _exit",
             what);
    for (;;)
        syscall(SYS_exit, 0);
}
