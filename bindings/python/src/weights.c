/* SPDX-License-Identifier: Apache-2.0 */
#include "weights.h"

#include "future.h"
#include "value.h"
#include "worker.h"

#include <stdlib.h>
#include <tenrec/weights.h>

struct weights {
    PyObject_HEAD
    struct tenrec_weights *s; /* NULL after the close */
    PyObject *worker;
    int runs; /* operations that are under way, and use `s` */
    bool closed;
};

static PyObject *weights_type;

void weights_use(PyObject *type)
{
    python_hold(&weights_type, type);
}

PyObject *weights_new(PyObject *worker, PyObject *args)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_weights *s;
    const char *set, *keeper;
    PyObject *self;
    tenrec_error err;

    if (!w || !PyArg_ParseTuple(args, "ss", &set, &keeper))
        return NULL;
    if (tenrec_weights_open(w, set, keeper, &s, &err))
        return error_raise(&err);
    self = python_new(weights_type);
    if (!self) {
        tenrec_weights_close(s);
        return NULL;
    }
    ((struct weights *)self)->s = s;
    ((struct weights *)self)->worker = Py_NewRef(worker);
    return self;
}

/* ---- the end ------------------------------------------------------------------------ */

/* Unless an operation still uses the set, which closes it then. */
static void weights_release(struct weights *me)
{
    struct tenrec_weights *s = me->s;

    me->closed = true;
    if (me->runs > 0 || !s || !worker_is_own(me->worker))
        return;
    me->s = NULL;
    Py_BEGIN_ALLOW_THREADS
    tenrec_weights_close(s);
    Py_END_ALLOW_THREADS
}

static void weights_dealloc(PyObject *self)
{
    struct weights *me = (struct weights *)self;

    weights_release(me);
    Py_XDECREF(me->worker);
    python_free(self);
    garbage_drain();
}

static PyObject *weights_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    weights_release((struct weights *)self);
    garbage_drain();
    Py_RETURN_NONE;
}

static struct weights *weights_checked(PyObject *self)
{
    struct weights *me = (struct weights *)self;

    if (me->s && !me->closed)
        return worker_of(me->worker) ? me : NULL;
    PyErr_SetString(PyExc_ValueError, me->worker ? "these Weights were closed"
                                                 : "these Weights were not made by Tenrec");
    return NULL;
}

/* ---- operations --------------------------------------------------------------------- */

struct operation {
    struct wait wait; /* first */
    struct weights *of;
    int64_t version, ms;
    size_t n;
    struct tenrec_weights_box *box;    /* n */
    int64_t (*at)[2][TENREC_MAX_DIMS]; /* n: the shapes and first elements of boxes */
    struct tenrec_weights_options options;
    tenrec_error why; /* of a report */
};

static void operation_release(void *self)
{
    struct operation *o = self;

    free(o->box);
    free(o->at);
    if (--o->of->runs == 0 && o->of->closed)
        weights_release(o->of);
}

static struct operation *operation_new(PyObject *self,
                                       tenrec_status (*run)(void *self, tenrec_error *err))
{
    struct weights *me = weights_checked(self);
    PyObject *kept = me ? PyList_New(0) : NULL;
    struct operation *o = kept ? wait_new(sizeof *o, self, kept) : NULL;

    Py_XDECREF(kept);
    if (!o)
        return NULL;
    o->wait.run = run;
    o->wait.release = operation_release;
    o->of = me;
    o->options.size = sizeof o->options;
    me->runs++;
    return o;
}

/* Begins it if its arguments could be read; frees it otherwise. */
static PyObject *operation_begin(struct operation *o, bool read)
{
    if (read)
        return wait_begin(o, o->of->worker);
    if (o)
        wait_end(o);
    return NULL;
}

/* ---- boxes -------------------------------------------------------------------------- */

/* Reads a tuple of a number for each dimension; None: NULL. */
static bool box_read_numbers(PyObject *from, const struct tenrec_tensor *t, const char *what,
                             int64_t *room, const int64_t **ret)
{
    const uint32_t ndim = tenrec_tensor_desc(t)->ndim;
    uint32_t n;

    if (from == Py_None)
        return true;
    if (!memory_read_shape(from, room, &n))
        return false;
    *ret = room;
    if (n != ndim)
        PyErr_Format(PyExc_ValueError, "'%s' has %u numbers, and its tensor %u dimensions", what,
                     (unsigned)n, (unsigned)ndim);
    return n == ndim;
}

/* Reads (name, memory, shape or None, first element or None). */
static bool box_read(struct operation *o, size_t i, PyObject *from)
{
    struct tenrec_weights_box *b = &o->box[i];
    PyObject *memory, *shape, *at, *tensor;

    if (!PyArg_ParseTuple(from, "sOOO", &b->name, &memory, &shape, &at))
        return false;
    tensor = memory_tensor(memory);
    if (!tensor || PyList_Append(o->wait.kept[1], tensor) < 0) {
        Py_XDECREF(tensor);
        return false;
    }
    Py_DECREF(tensor); /* the list has it */
    b->size = sizeof *b;
    b->tensor = tensor_of(tensor);
    return box_read_numbers(shape, b->tensor, "shape", o->at[i][0], &b->shape) &&
           box_read_numbers(at, b->tensor, "at", o->at[i][1], &b->at);
}

/* The names in the tuple are kept with it. */
static bool boxes_read(struct operation *o, PyObject *from)
{
    o->n = (size_t)PyTuple_Size(from);
    o->box = calloc(o->n ? o->n : 1, sizeof *o->box);
    o->at = calloc(o->n ? o->n : 1, sizeof *o->at);
    if (!o->box || !o->at) {
        PyErr_NoMemory();
        return false;
    }
    if (PyList_Append(o->wait.kept[1], from) < 0)
        return false;
    for (size_t i = 0; i < o->n; i++)
        if (!box_read(o, i, PyTuple_GetItem(from, (Py_ssize_t)i)))
            return false;
    return true;
}

/* ---- what a set does ---------------------------------------------------------------- */

static tenrec_status publish_run(void *self, tenrec_error *err)
{
    const struct operation *o = self;

    return tenrec_weights_publish(o->of->s, o->version, o->box, o->n, &o->options, err);
}

/* _publish(version, boxes, publishers, in_place, ms) */
static PyObject *weights_publish(PyObject *self, PyObject *args)
{
    struct operation *o = operation_new(self, publish_run);
    unsigned publishers = 0;
    int in_place = 0;
    long long version, ms;
    PyObject *boxes;
    bool read = o && PyArg_ParseTuple(args, "LO!IpL", &version, &PyTuple_Type, &boxes, &publishers,
                                      &in_place, &ms);

    if (read) {
        o->version = version;
        o->options.publishers = publishers;
        o->options.flags = in_place ? TENREC_WEIGHTS_IN_PLACE : 0;
        o->options.timeout_ms = ms;
        read = boxes_read(o, boxes);
    }
    return operation_begin(o, read);
}

static tenrec_status pull_run(void *self, tenrec_error *err)
{
    struct operation *o = self;
    struct tenrec_value got;
    int64_t version;
    tenrec_status st =
        tenrec_weights_pull(o->of->s, o->version, o->box, o->n, &o->options, &version, err);

    if (st != TENREC_OK)
        return st;
    got = tenrec_value_int(version);
    return tenrec_value_copy(&got, &o->wait.value, err);
}

/* _pull(version, boxes, after, ms) */
static PyObject *weights_pull(PyObject *self, PyObject *args)
{
    struct operation *o = operation_new(self, pull_run);
    long long version, after, ms;
    PyObject *boxes;
    bool read = o && PyArg_ParseTuple(args, "LO!LL", &version, &PyTuple_Type, &boxes, &after, &ms);

    if (read) {
        o->version = version;
        o->options.after = after;
        o->options.timeout_ms = ms;
        read = boxes_read(o, boxes);
    }
    return operation_begin(o, read);
}

static tenrec_status report_run(void *self, tenrec_error *err)
{
    const struct operation *o = self;

    return tenrec_weights_report(o->of->s, o->version, o->why.code ? &o->why : NULL, err);
}

/* _report(version, None or (status, text)) */
static PyObject *weights_report(PyObject *self, PyObject *args)
{
    struct operation *o = operation_new(self, report_run);
    long long version;
    PyObject *why;
    bool read = o && PyArg_ParseTuple(args, "LO", &version, &why);

    if (read) {
        o->version = version;
        read = why == Py_None || error_read(why, &o->why);
    }
    return operation_begin(o, read);
}

static tenrec_status wait_for_run(void *self, tenrec_error *err)
{
    struct operation *o = self;

    return tenrec_weights_wait(o->of->s, o->version, o->n, o->ms, &o->wait.value, err);
}

/* _wait(version, reports, ms) */
static PyObject *weights_wait(PyObject *self, PyObject *args)
{
    struct operation *o = operation_new(self, wait_for_run);
    long long version, ms;
    Py_ssize_t reports;
    bool read = o && PyArg_ParseTuple(args, "LnL", &version, &reports, &ms);

    if (read) {
        o->version = version;
        o->n = (size_t)reports;
        o->ms = ms;
    }
    return operation_begin(o, read);
}

static tenrec_status withdraw_run(void *self, tenrec_error *err)
{
    const struct operation *o = self;

    return tenrec_weights_withdraw(o->of->s, o->version, o->ms, err);
}

/* _withdraw(version, ms) */
static PyObject *weights_withdraw(PyObject *self, PyObject *args)
{
    struct operation *o = operation_new(self, withdraw_run);
    long long version, ms;
    bool read = o && PyArg_ParseTuple(args, "LL", &version, &ms);

    if (read) {
        o->version = version;
        o->ms = ms;
    }
    return operation_begin(o, read);
}

static PyMethodDef weights_methods[] = {
    { "_publish", weights_publish, METH_VARARGS, NULL },
    { "_pull", weights_pull, METH_VARARGS, NULL },
    { "_report", weights_report, METH_VARARGS, NULL },
    { "_wait", weights_wait, METH_VARARGS, NULL },
    { "_withdraw", weights_withdraw, METH_VARARGS, NULL },
    { "close", weights_close, METH_NOARGS,
      "Withdraws all that the handle has published and pulled, without waiting for readers." },
    { NULL, NULL, 0, NULL },
};

bool weights_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, weights_dealloc },
        { Py_tp_methods, weights_methods },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.Weights", sizeof(struct weights), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots };
    PyObject *type = python_add_type(module, &spec);

    Py_XDECREF(type); /* the module has it */
    return type;
}
