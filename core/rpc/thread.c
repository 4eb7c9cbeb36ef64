/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/thread.h"

#include "rpc/future.h"
#include "rpc/stream.h"

#include <pthread.h>
#include <unistd.h>

_Thread_local struct thread_state thread_state;

static pthread_key_t ends_key;
static bool have_key;

static void thread_ends(void *arg)
{
    struct thread_state *t = arg;
    struct tenrec_future *next;

    if (t->spare_fd > 0)
        close(t->spare_fd);
    for (struct tenrec_future *f = t->spare; f; f = next) {
        next = f->next;
        future_free(f);
    }
    streams_drop(t->own_streams);
    if (t->streams == t->own_streams)
        t->streams = NULL;
    t->own_streams = NULL;
    t->spare_fd = 0;
    t->spare = NULL;
    t->n_spare = 0;
    t->keeps = false; /* a destructor of others may still call */
}

static void make_key(void)
{
    have_key = pthread_key_create(&ends_key, thread_ends) == 0;
    pthread_atfork(NULL, NULL, futures_forget_depot);
}

bool thread_keeps_first(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_key);
    thread_state.keeps = have_key && pthread_setspecific(ends_key, &thread_state) == 0;
    return thread_state.keeps;
}
