/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/threads.h"

#include <signal.h>

int threads_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int r;

    /* The new thread inherits the mask, so it never runs without it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        pthread_setname_np(*ret, name);
    return r;
}
