/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/threads.h"

#include "core/base/forks.h"

#include <signal.h>
#include <sys/syscall.h>
#include <tenrec/agent.h>
#include <unistd.h>

_Thread_local uint32_t thread_own_id;

int threads_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, before;
    size_t stack = 0;
    int r;

    pthread_attr_init(&attr);
    pthread_attr_getstacksize(&attr, &stack);
    if (stack < TENREC_THREAD_STACK)
        pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    /* The new thread inherits the mask, so it never runs without it. */
    sigfillset(&all);
    sigdelset(&all, THREADS_STACK_SIGNAL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(ret, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (r == 0)
        pthread_setname_np(*ret, name);
    return r;
}

void threads_unblock_stack(void)
{
    static const int some[] = { SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM };
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        if (!sigismember(&mask, some[i]))
            return; /* a mask of the program, which may wait for ours elsewhere */
    sigdelset(&mask, THREADS_STACK_SIGNAL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* The thread that forked has another id in the child. */
static void thread_forked(void)
{
    thread_own_id = 0;
}

static struct fork_hook fork_hook = { .child = thread_forked };

uint32_t thread_find_id(void)
{
    forks_follow(&fork_hook);
    return thread_own_id = (uint32_t)syscall(SYS_gettid);
}
