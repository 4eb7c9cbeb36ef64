/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "future.h"
#include "value.h"

#include <string.h>

static bool call_read_args(struct call *c, PyObject *args, long long ms)
{
    c->options.size = sizeof c->options;
    c->options.timeout_ms = ms;
    return values_read(&c->args, args);
}

/* The memory for the result. false with an exception. */
static bool call_read_into(struct call *c, PyObject *memory)
{
    struct tenrec_tensor *tensor;

    c->into = memory_tensor(memory);
    tensor = c->into ? tensor_of(c->into) : NULL;
    if (!tensor)
        return false;
    if (tenrec_tensor_desc(tensor)->flags & TENREC_TENSOR_READ_ONLY) {
        PyErr_SetString(PyExc_BufferError, "the memory for the result is read-only");
        return false;
    }
    c->options.into = tensor;
    return true;
}

static bool call_read(struct call *c, PyObject *args)
{
    PyObject *values, *into = NULL;
    long long ms;

    memset(c, 0, sizeof *c);
    return PyArg_ParseTuple(args, "ssO!L|O", &c->to, &c->function, &PyTuple_Type, &values, &ms,
                            &into) &&
           call_read_args(c, values, ms) && (!into || call_read_into(c, into));
}

bool call_read_of_rref(struct call *c, PyObject *args)
{
    PyObject *values;
    long long ms;

    memset(c, 0, sizeof *c);
    return PyArg_ParseTuple(args, "sO!L", &c->function, &PyTuple_Type, &values, &ms) &&
           call_read_args(c, values, ms);
}

void call_finish(struct call *c)
{
    values_finish(&c->args);
    Py_CLEAR(c->into); /* the call shares its memory */
    garbage_drain();
}

PyObject *call_result(tenrec_status st, struct tenrec_future *f, const tenrec_error *err,
                      PyObject *worker)
{
    PyObject *result;

    if (st)
        return error_raise(err);
    result = future_result(f, TENREC_TIMEOUT_NONE, worker);
    if (!tenrec_future_done(f)) { /* a signal has ended the wait */
        Py_BEGIN_ALLOW_THREADS
        tenrec_future_cancel(f);
        Py_END_ALLOW_THREADS
    }
    tenrec_future_drop(f);
    return result;
}

PyObject *call_future(tenrec_status st, struct tenrec_future *f, const tenrec_error *err,
                      PyObject *worker)
{
    return st ? error_raise(err) : future_wrap(f, worker);
}

/* flags: of the call, which is waited for with any of them: without the GIL being had back
 * meanwhile, as others want it, too. This thread reads the answer: the worker's own sleeps. */
static PyObject *call_start(PyObject *worker, PyObject *args, uint32_t flags, call_end_fn *end)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_future *f = NULL;
    tenrec_status st = TENREC_OK;
    tenrec_error err;
    struct call c;
    bool read;

    if (!w)
        return NULL;
    read = call_read(&c, args);
    if (read) {
        c.options.flags = flags;
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_rpc_async(w, c.to, c.function, c.args.item, c.args.n, &c.options, &f, &err);
        if (st == TENREC_OK && flags)
            (void)tenrec_future_wait(f, WAIT_SLICE_MS, NULL);
        Py_END_ALLOW_THREADS
    }
    call_finish(&c);
    return read ? end(st, f, &err, worker) : NULL;
}

PyObject *call_sync(PyObject *worker, PyObject *args)
{
    return call_start(worker, args, TENREC_WAIT_NEXT, call_result);
}

PyObject *call_one_way(PyObject *worker, PyObject *args)
{
    return call_start(worker, args, TENREC_ONE_WAY, call_result);
}

PyObject *call_async(PyObject *worker, PyObject *args)
{
    return call_start(worker, args, 0, call_future);
}

PyObject *call_remote(PyObject *worker, PyObject *args)
{
    struct tenrec_worker *w = worker_of(worker);
    tenrec_status st = TENREC_OK;
    PyObject *made = NULL;
    struct tenrec_rref *r;
    tenrec_error err;
    struct call c;

    if (!w)
        return NULL;
    if (call_read(&c, args)) {
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_remote(w, c.to, c.function, c.args.item, c.args.n, &c.options, &r, &err);
        Py_END_ALLOW_THREADS
        made = st ? error_raise(&err) : rref_wrap(r, worker);
    }
    call_finish(&c);
    return made;
}

PyObject *call_rref(PyObject *worker, PyObject *value)
{
    struct tenrec_worker *w = worker_of(worker);
    PyObject *made = NULL;
    struct tenrec_rref *r;
    struct values values;
    tenrec_status st;
    tenrec_error err;

    if (!w)
        return NULL;
    if (values_read_one(&values, value, true)) {
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_rref_new(w, values.item, &r, &err);
        Py_END_ALLOW_THREADS
        made = st ? error_raise(&err) : rref_wrap(r, worker);
    }
    values_finish(&values);
    return made;
}
