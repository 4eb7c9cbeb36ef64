/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - threads of Tenrec's own. */
#ifndef TENREC_BASE_THREADS_H
#define TENREC_BASE_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/* The signal by which a dump asks a thread where it stands (recorder/stack.h). */
#define THREADS_STACK_SIGNAL (SIGRTMAX - 3)

/* pthread_create with a stack of TENREC_THREAD_STACK, or more where more is the default, and with
 * all signals but that one blocked in the new thread: a signal that the program handles, or waits
 * for, is delivered to one of the program's own threads.
 *
 * name     at most 15 bytes, shown by top and debuggers
 * returns  0 or an errno
 */
int threads_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg);

/* Unblocks that signal in this thread if it blocks all, as threads of the backends do. */
void threads_unblock_stack(void);

/* The id of this thread in the system, as the folder in /proc/self/task. */
extern _Thread_local uint32_t thread_own_id STATIC_TLS;
uint32_t thread_find_id(void); /* the slow path */
static inline uint32_t thread_id(void)
{
    return __builtin_expect(thread_own_id != 0, 1) ? thread_own_id : thread_find_id();
}

#endif
