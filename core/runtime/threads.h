/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - threads of Tenrec's own. */
#ifndef TENREC_RUNTIME_THREADS_H
#define TENREC_RUNTIME_THREADS_H

#include <pthread.h>

/* pthread_create with all signals blocked in the new thread: a signal that the
 * program handles, or waits for, is delivered to one of the program's own threads.
 *
 * name     at most 15 bytes, shown by top and debuggers
 * returns  0 or an errno
 */
int threads_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg);

#endif
