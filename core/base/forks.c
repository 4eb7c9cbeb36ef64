/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/forks.h"

#include "core/base/log.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t forks_seen;

static void forks_count(void)
{
    forks_seen++;
}

static void forks_register(void)
{
    pthread_atfork(NULL, NULL, forks_count);
}

void forks_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, forks_register);
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
