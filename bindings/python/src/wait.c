/* SPDX-License-Identifier: Apache-2.0 */
#include "future.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <tenrec/value.h>
#include <time.h>
#include <unistd.h>

enum state { WAIT_RUNS, WAIT_DONE, WAIT_ABANDONED };

/* Shared by the two threads; the last one frees it. */
struct helper {
    struct wait *wait;
    sem_t woken;
    tenrec_status st;
    tenrec_error err;
    _Atomic(enum state) state;
    atomic_int holders;
};

void *wait_new(size_t size, PyObject *first, PyObject *second)
{
    struct wait *w = calloc(1, size);

    if (!w)
        return PyErr_NoMemory();
    w->kept[0] = Py_XNewRef(first);
    w->kept[1] = Py_XNewRef(second);
    return w;
}

void wait_end(void *self)
{
    struct wait *w = self;

    if (w->release)
        w->release(w);
    Py_XDECREF(w->kept[0]);
    Py_XDECREF(w->kept[1]);
    tenrec_value_drop(w->value);
    free(w);
}

static void wait_release(struct garbage *g)
{
    wait_end(g);
}

static void helper_drop(struct helper *h)
{
    if (atomic_fetch_sub(&h->holders, 1) > 1)
        return;
    sem_destroy(&h->woken);
    free(h);
}

static void *helper_run(void *arg)
{
    struct helper *h = arg;

    h->st = h->wait->run(h->wait, &h->err);
    if (atomic_exchange(&h->state, WAIT_DONE) == WAIT_ABANDONED)
        garbage_put(&h->wait->garbage);
    sem_post(&h->woken);
    helper_drop(h);
    return NULL;
}

/* Signals are for the thread that waits. */
static bool helper_start(void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, former;
    pthread_t thread;
    bool started;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_BLOCK, &all, &former);
    started = pthread_create(&thread, &attr, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    pthread_attr_destroy(&attr);
    return started;
}

/* Returns false with the exception of a signal handler. */
static bool helper_await(struct helper *h)
{
    while (atomic_load(&h->state) == WAIT_RUNS) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until); /* of a slice: a step of the clock does no harm */
        until.tv_nsec += WAIT_SLICE_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        Py_BEGIN_ALLOW_THREADS
        sem_timedwait(&h->woken, &until); /* a signal ends it */
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0)
            return false;
    }
    return true;
}

/* On the main thread. */
static bool wait_interruptibly(struct wait *w, tenrec_status *ret, tenrec_error *err)
{
    struct helper *h = calloc(1, sizeof *h);
    bool awaited;

    if (!h || sem_init(&h->woken, 0, 0) != 0) {
        free(h);
        PyErr_NoMemory();
        wait_end(w);
        return false;
    }
    h->wait = w;
    w->garbage.release = wait_release;
    atomic_store(&h->holders, 2);
    if (!helper_start(helper_run, h)) {
        helper_drop(h);
        helper_drop(h);
        wait_end(w);
        PyErr_SetString(PyExc_RuntimeError, "cannot start a thread");
        return false;
    }
    awaited = helper_await(h);
    if (!awaited && atomic_exchange(&h->state, WAIT_ABANDONED) == WAIT_DONE)
        wait_end(w);
    *ret = h->st;
    *err = h->err;
    helper_drop(h);
    return awaited;
}

/* ---- with a future ------------------------------------------------------------------ */

struct begun {
    struct wait *wait;
    struct tenrec_future *f;
};

/* The memory of the operation is queued to be freed before its waiters wake. */
static void *begun_run(void *arg)
{
    static const struct tenrec_value nil;
    struct begun *b = arg;
    tenrec_error err;
    tenrec_status st = b->wait->run(b->wait, &err);
    struct tenrec_value *value = b->wait->value;

    b->wait->value = NULL;
    garbage_put(&b->wait->garbage);
    if (st == TENREC_OK)
        st = tenrec_future_set_value(b->f, value ? value : &nil, &err);
    if (st != TENREC_OK) /* refused if the future was canceled */
        tenrec_future_set_error(b->f, &err, NULL);
    tenrec_value_drop(value);
    tenrec_future_drop(b->f);
    free(b);
    return NULL;
}

PyObject *wait_begin(void *self, PyObject *worker)
{
    struct begun *b = calloc(1, sizeof *b);
    struct wait *w = self;
    PyObject *future = NULL;
    tenrec_error err;

    w->garbage.release = wait_release;
    if (!b) {
        PyErr_NoMemory();
    } else if (tenrec_future_new(&b->f, &err)) {
        error_raise(&err);
    } else {
        b->wait = w;
        future = future_wrap(tenrec_future_share(b->f), worker);
    }
    if (future && helper_start(begun_run, b))
        return future;
    if (future)
        PyErr_SetString(PyExc_RuntimeError, "cannot start a thread");
    Py_XDECREF(future);
    if (b)
        tenrec_future_drop(b->f);
    free(b);
    wait_end(w);
    return NULL;
}

/* ---- without one -------------------------------------------------------------------- */

bool wait_run(void *self)
{
    struct wait *w = self;
    tenrec_status st;
    tenrec_error err;

    if (syscall(SYS_gettid) == getpid()) {
        if (!wait_interruptibly(w, &st, &err))
            return false;
    } else {
        Py_BEGIN_ALLOW_THREADS
        st = w->run(w, &err);
        Py_END_ALLOW_THREADS
    }
    if (st == TENREC_OK)
        return true;
    wait_end(w);
    error_raise(&err);
    return false;
}
