/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/thread_state.h"

#include "core/base/forks.h"

_Thread_local struct thread_state thread_state;

/* The thread that forked is in code of the program, and in the child it is in no other: a wait
 * there must not use the pool, the lists and the waiter of the parent's frames below it. */
static void thread_state_forked(void)
{
    thread_state = (struct thread_state){ .scope = thread_state.scope };
}

static struct fork_hook fork_hook = { .child = thread_state_forked };

void thread_state_watch_forks(void)
{
    forks_follow(&fork_hook);
}
