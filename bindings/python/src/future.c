/* SPDX-License-Identifier: Apache-2.0 */
#include "future.h"

#include "value.h"
#include "worker.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct future {
    PyObject_HEAD
    struct tenrec_future *f;
    struct tenrec_future *visible, *buffers_free; /* of a transfer; else NULL */
    PyObject *worker;
};

static PyObject *future_type, *transfer_type;

void future_use(PyObject *type, PyObject *transfer)
{
    python_hold(&future_type, type);
    python_hold(&transfer_type, transfer);
}

static PyObject *future_make(PyObject *type, struct tenrec_future *f, PyObject *worker)
{
    PyObject *self = python_new(type);

    if (!self) {
        tenrec_future_drop(f);
        return NULL;
    }
    ((struct future *)self)->f = f;
    ((struct future *)self)->worker = Py_NewRef(worker);
    return self;
}

PyObject *future_wrap(struct tenrec_future *f, PyObject *worker)
{
    return future_make(future_type, f, worker);
}

PyObject *future_wrap_transfer(struct tenrec_future *f, struct tenrec_future *visible,
                               struct tenrec_future *buffers_free, PyObject *worker)
{
    PyObject *self = future_make(transfer_type, f, worker);

    if (!self) {
        tenrec_future_drop(visible);
        tenrec_future_drop(buffers_free);
        return NULL;
    }
    ((struct future *)self)->visible = visible;
    ((struct future *)self)->buffers_free = buffers_free;
    return self;
}

static void future_dealloc(PyObject *self)
{
    struct future *me = (struct future *)self;

    Py_BEGIN_ALLOW_THREADS
    tenrec_future_drop(me->f);
    tenrec_future_drop(me->visible);
    tenrec_future_drop(me->buffers_free);
    Py_END_ALLOW_THREADS
    Py_XDECREF(me->worker);
    python_free(self);
    garbage_drain();
}

static struct tenrec_future *future_checked(PyObject *self)
{
    struct tenrec_future *f = ((struct future *)self)->f;

    if (!f)
        PyErr_SetString(PyExc_ValueError, "this Future was not made by Tenrec");
    return f;
}

static int64_t future_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until `f` is done, the limit has passed, or a signal handler has raised. */
static bool future_wait_interruptibly(struct tenrec_future *f, int64_t ms, tenrec_status *ret,
                                      tenrec_error *err)
{
    const int64_t end = ms == TENREC_TIMEOUT_NONE ? INT64_MAX : future_now_ms() + ms;

    for (int64_t left = ms;; left = end - future_now_ms()) {
        const bool last = left <= WAIT_SLICE_MS;

        Py_BEGIN_ALLOW_THREADS
        *ret = tenrec_future_wait(f, !last ? WAIT_SLICE_MS : left > 0 ? left : 1, err);
        Py_END_ALLOW_THREADS
        if (*ret != TENREC_ETIMEDOUT || last || tenrec_future_done(f))
            return true;
        if (PyErr_CheckSignals() < 0)
            return false;
    }
}

PyObject *future_result(struct tenrec_future *f, int64_t ms, PyObject *worker)
{
    tenrec_status st;
    tenrec_error err;

    if (tenrec_future_done(f))
        st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, &err); /* at once */
    else if (!worker_of(worker) || !future_wait_interruptibly(f, ms, &st, &err))
        return NULL;
    if (st == TENREC_ETIMEDOUT && tenrec_future_done(f)) /* by its call, or just after the wait */
        st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, &err);
    garbage_drain();
    if (st == TENREC_OK)
        return value_to_python(tenrec_future_value(f), worker);
    if (st == TENREC_ETIMEDOUT && !tenrec_future_done(f))
        tenrec_fail(&err, st, "the future is not done after %lld ms", (long long)ms);
    return error_raise(&err);
}

static PyObject *future_wait(PyObject *self, PyObject *ms)
{
    struct tenrec_future *f = future_checked(self);
    const int64_t limit = PyLong_AsLongLong(ms);

    if (!f || PyErr_Occurred())
        return NULL;
    return future_result(f, limit, ((struct future *)self)->worker);
}

static PyObject *future_done(PyObject *self, PyObject *unused)
{
    struct tenrec_future *f = future_checked(self);

    (void)unused;
    return f ? PyBool_FromLong(tenrec_future_done(f)) : NULL;
}

static PyObject *future_cancel(PyObject *self, PyObject *unused)
{
    struct tenrec_future *f = future_checked(self);

    (void)unused;
    if (!f)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tenrec_future_cancel(f);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* In tenrec_worker_dispatch. */
static void future_call_back(struct tenrec_future *f, void *arg)
{
    PyGILState_STATE gil = gil_take();
    PyObject *function = arg, *result = PyObject_CallNoArgs(function);

    (void)f;
    if (!result)
        PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    Py_DECREF(function);
    PyGILState_Release(gil);
}

static PyObject *future_on_done(PyObject *self, PyObject *function)
{
    struct tenrec_future *f = future_checked(self);
    tenrec_status st;
    tenrec_error err;

    if (!f)
        return NULL;
    Py_INCREF(function);
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_future_add_callback(f, future_call_back, function, &err);
    Py_END_ALLOW_THREADS
    if (st == TENREC_OK)
        Py_RETURN_NONE;
    Py_DECREF(function);
    return error_raise(&err);
}

/* On a thread that may serve connections, and so does not wait for the GIL. */
static void future_write(struct tenrec_future *f, void *arg)
{
    const int fd = (int)(intptr_t)arg;
    const uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);

    (void)f;
    (void)n; /* more is not needed: the descriptor is readable */
    close(fd);
}

/* _signal(): a new eventfd, which is readable when the future is done. The caller closes it. */
static PyObject *future_signal(PyObject *self, PyObject *unused)
{
    struct tenrec_future *f = future_checked(self);
    int fd, own;
    tenrec_error err;

    (void)unused;
    if (!f)
        return NULL;
    fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0 &&
        tenrec_future_add_callback(f, future_write, (void *)(intptr_t)own, &err) == TENREC_OK)
        return PyLong_FromLong(fd);
    if (own < 0)
        PyErr_SetFromErrno(PyExc_OSError);
    else
        error_raise(&err);
    close(own);
    close(fd);
    return NULL;
}

static PyObject *future_worker(PyObject *self, void *unused)
{
    (void)unused;
    return future_checked(self) ? Py_NewRef(((struct future *)self)->worker) : NULL;
}

/* An earlier end of a transfer, as a future of its own. */
static PyObject *future_part(PyObject *self, struct tenrec_future *part)
{
    if (part)
        return future_wrap(tenrec_future_share(part), ((struct future *)self)->worker);
    PyErr_SetString(PyExc_ValueError, "this Future is not that of a transfer");
    return NULL;
}

static PyObject *future_visible(PyObject *self, void *unused)
{
    (void)unused;
    return future_part(self, ((struct future *)self)->visible);
}

static PyObject *future_buffers_free(PyObject *self, void *unused)
{
    (void)unused;
    return future_part(self, ((struct future *)self)->buffers_free);
}

static PyMethodDef future_methods[] = {
    { "_wait", future_wait, METH_O, NULL },
    { "_on_done", future_on_done, METH_O, NULL },
    { "_signal", future_signal, METH_NOARGS, NULL },
    { "done", future_done, METH_NOARGS,
      "Returns True once the call has a result or an error; never blocks." },
    { "cancel", future_cancel, METH_NOARGS,
      "Fails the future with ECANCELED; the callee is notified, and may stop early. Does nothing "
      "to a future that is done." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef future_properties[] = {
    { "_worker", future_worker, NULL, NULL, NULL },
    { "_visible", future_visible, NULL, NULL, NULL },
    { "_free", future_buffers_free, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

bool future_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, future_dealloc },
        { Py_tp_methods, future_methods },
        { Py_tp_getset, future_properties },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.Future", sizeof(struct future), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots };
    PyObject *base = python_add_type(module, &spec);

    Py_XDECREF(base); /* the module has it */
    return base;
}
