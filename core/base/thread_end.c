/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/threads.h"

#include <pthread.h>
#include <stddef.h>

static _Thread_local struct thread_end *first;
static pthread_key_t key;
static bool have_key;

static void thread_end_run(void *arg)
{
    struct thread_end *e, *next;

    (void)arg;
    for (e = first, first = NULL; e; e = next) {
        void (*fn)(void) = e->fn;

        next = e->next;
        e->fn = NULL; /* a destructor of another library may still make calls */
        fn();
    }
}

static void thread_end_make_key(void)
{
    have_key = pthread_key_create(&key, thread_end_run) == 0;
}

bool thread_end_add(struct thread_end *e, void (*fn)(void))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, thread_end_make_key);
    if (!have_key || pthread_setspecific(key, &first) != 0)
        return false;
    *e = (struct thread_end){ fn, first };
    first = e;
    return true;
}
