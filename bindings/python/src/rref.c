/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include "future.h"
#include "worker.h"

struct rref {
    PyObject_HEAD
    struct tenrec_rref *r;
    PyObject *worker;
};

static PyObject *rref_base, *rref_type;

void rref_use(PyObject *type)
{
    python_hold(&rref_type, type);
}

PyObject *rref_wrap(struct tenrec_rref *r, PyObject *worker)
{
    PyObject *self = python_new(rref_type);

    if (!self) {
        tenrec_rref_drop(r);
        return NULL;
    }
    ((struct rref *)self)->r = r;
    ((struct rref *)self)->worker = Py_NewRef(worker);
    return self;
}

struct tenrec_rref *rref_of(PyObject *o)
{
    return rref_base && PyObject_TypeCheck(o, (PyTypeObject *)rref_base) ? ((struct rref *)o)->r
                                                                         : NULL;
}

static void rref_dealloc(PyObject *self)
{
    struct rref *me = (struct rref *)self;
    struct tenrec_rref *r = me->r;

    Py_BEGIN_ALLOW_THREADS
    tenrec_rref_drop(r);
    Py_END_ALLOW_THREADS
    Py_XDECREF(me->worker);
    python_free(self);
    garbage_drain();
}

static struct tenrec_rref *rref_checked(PyObject *self)
{
    struct tenrec_rref *r = ((struct rref *)self)->r;

    if (!r)
        PyErr_SetString(PyExc_ValueError, "this RRef was not made by Tenrec");
    return r && worker_of(((struct rref *)self)->worker) ? r : NULL;
}

/* ---- calls on the value -------------------------------------------------------------- */

/* As call_start of call.c. */
static PyObject *rref_start(PyObject *self, PyObject *args, bool wait, call_end_fn *end)
{
    struct tenrec_rref *r = rref_checked(self);
    struct tenrec_future *f = NULL;
    tenrec_status st = TENREC_OK;
    tenrec_error err;
    struct call c;
    bool read;

    if (!r)
        return NULL;
    read = call_read_of_rref(&c, args);
    if (read) {
        c.options.flags = wait ? TENREC_WAIT_NEXT : 0;
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_rref_rpc_async(r, c.function, c.args.item, c.args.n, &c.options, &f, &err);
        if (st == TENREC_OK && wait)
            (void)tenrec_future_wait(f, WAIT_SLICE_MS, NULL);
        Py_END_ALLOW_THREADS
    }
    call_finish(&c);
    return read ? end(st, f, &err, ((struct rref *)self)->worker) : NULL;
}

static PyObject *rref_call(PyObject *self, PyObject *args)
{
    return rref_start(self, args, true, call_result);
}

static PyObject *rref_call_async(PyObject *self, PyObject *args)
{
    return rref_start(self, args, false, call_future);
}

static PyObject *rref_remote(PyObject *self, PyObject *args)
{
    struct tenrec_rref *r = rref_checked(self), *made_r;
    PyObject *made = NULL;
    tenrec_status st;
    tenrec_error err;
    struct call c;

    if (!r)
        return NULL;
    if (call_read_of_rref(&c, args)) {
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_rref_remote(r, c.function, c.args.item, c.args.n, &c.options, &made_r, &err);
        Py_END_ALLOW_THREADS
        made = st ? error_raise(&err) : rref_wrap(made_r, ((struct rref *)self)->worker);
    }
    call_finish(&c);
    return made;
}

/* ---- the value ------------------------------------------------------------------------ */

static PyObject *rref_fetch(PyObject *self, PyObject *ms, bool wait, call_end_fn *end)
{
    struct tenrec_call_options options = { .size = sizeof options,
                                           .flags = wait ? TENREC_WAIT_NEXT : 0 };
    struct tenrec_rref *r = rref_checked(self);
    struct tenrec_future *f;
    tenrec_status st;
    tenrec_error err;

    options.timeout_ms = PyLong_AsLongLong(ms);
    if (!r || PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_rref_to_here_async(r, &options, &f, &err);
    if (st == TENREC_OK && wait)
        (void)tenrec_future_wait(f, WAIT_SLICE_MS, NULL);
    Py_END_ALLOW_THREADS
    return end(st, f, &err, ((struct rref *)self)->worker);
}

static PyObject *rref_to_here(PyObject *self, PyObject *ms)
{
    return rref_fetch(self, ms, true, call_result);
}

static PyObject *rref_to_here_async(PyObject *self, PyObject *ms)
{
    return rref_fetch(self, ms, false, call_future);
}

struct local {
    struct wait wait; /* first */
    struct tenrec_rref *r;
    int64_t ms;
    const struct tenrec_value *v; /* borrowed from the reference, which is kept */
};

static tenrec_status local_run(void *self, tenrec_error *err)
{
    struct local *l = self;

    return tenrec_rref_local_value(l->r, l->ms, &l->v, err);
}

static PyObject *rref_local_value(PyObject *self, PyObject *ms)
{
    struct tenrec_rref *r = rref_checked(self);
    const int64_t limit = PyLong_AsLongLong(ms);
    struct local *l;
    PyObject *made;

    if (!r || PyErr_Occurred())
        return NULL;
    l = wait_new(sizeof *l, self, NULL);
    if (!l)
        return NULL;
    l->wait.run = local_run;
    l->r = r;
    l->ms = limit;
    if (!wait_run(l))
        return NULL;
    made = value_to_python(l->v, ((struct rref *)self)->worker);
    wait_end(l);
    return made;
}

/* ---- known without a call -------------------------------------------------------------- */

static PyObject *rref_owner(PyObject *self, PyObject *unused)
{
    struct tenrec_rref *r = rref_checked(self);

    (void)unused;
    return r ? Py_BuildValue("is", (int)tenrec_rref_owner(r), tenrec_rref_owner_name(r)) : NULL;
}

static PyObject *rref_is_owner(PyObject *self, void *unused)
{
    struct tenrec_rref *r = rref_checked(self);

    (void)unused;
    return r ? PyBool_FromLong(tenrec_rref_is_owner(r)) : NULL;
}

static PyObject *rref_confirmed(PyObject *self, void *unused)
{
    struct tenrec_rref *r = rref_checked(self);

    (void)unused;
    return r ? PyBool_FromLong(tenrec_rref_confirmed_by_owner(r)) : NULL;
}

static PyObject *rref_repr(PyObject *self)
{
    char text[TENREC_RREF_TEXT_MAX];
    struct tenrec_rref *r = rref_checked(self);

    return r ? PyUnicode_FromString(tenrec_rref_text(r, text, sizeof text)) : NULL;
}

static PyMethodDef rref_methods[] = {
    { "_call", rref_call, METH_VARARGS, NULL },
    { "_call_async", rref_call_async, METH_VARARGS, NULL },
    { "_remote", rref_remote, METH_VARARGS, NULL },
    { "_to_here", rref_to_here, METH_O, NULL },
    { "_to_here_async", rref_to_here_async, METH_O, NULL },
    { "_local_value", rref_local_value, METH_O, NULL },
    { "_owner", rref_owner, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef rref_properties[] = {
    { "is_owner", rref_is_owner, NULL, "True at the worker that has the value.", NULL },
    { "confirmed", rref_confirmed, NULL,
      "True once the owner has confirmed that it counts this reference.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

bool rref_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, rref_dealloc },
        { Py_tp_repr, rref_repr },
        { Py_tp_methods, rref_methods },
        { Py_tp_getset, rref_properties },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.RRef", sizeof(struct rref), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots };

    PyObject *type = python_add_type(module, &spec);

    python_hold(&rref_base, type);
    Py_XDECREF(type);
    return type;
}
