/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include "worker.h"

#include <tenrec/link.h>

struct link {
    PyObject_HEAD
    struct tenrec_link *l; /* NULL after the drop */
    PyObject *worker, *name;
    unsigned forks;
};

static PyObject *link_type;

void link_use(PyObject *type)
{
    python_hold(&link_type, type);
}

PyObject *link_bind(PyObject *worker, PyObject *with_secret)
{
    struct tenrec_worker *w = worker_of(worker);
    char record[TENREC_LINK_RECORD_MAX];
    const int secret = w ? PyObject_IsTrue(with_secret) : -1;
    tenrec_status st;
    tenrec_error err;
    size_t n;

    if (secret < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_link_bind(w, secret ? TENREC_LINK_WITH_SECRET : 0, record, &n, &err);
    Py_END_ALLOW_THREADS
    return st ? error_raise(&err) : PyBytes_FromStringAndSize(record, (Py_ssize_t)n);
}

PyObject *link_connect(PyObject *worker, PyObject *record)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_link *l = NULL;
    struct link *me;
    tenrec_status st;
    tenrec_error err;
    Py_ssize_t n;
    char *bytes;

    if (!w || PyBytes_AsStringAndSize(record, &bytes, &n) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_link_connect(w, bytes, (size_t)n, &l, &err);
    Py_END_ALLOW_THREADS
    me = (struct link *)(st ? error_raise(&err) : python_new(link_type));
    if (!me) {
        tenrec_link_drop(l);
        return NULL;
    }
    me->l = l;
    me->worker = Py_NewRef(worker);
    me->name = python_text(tenrec_link_name(l));
    me->forks = forked_count();
    if (me->name)
        return (PyObject *)me;
    Py_DECREF(me);
    return NULL;
}

/* A forked child has no thread that could drop it. */
static void link_release(struct link *me)
{
    struct tenrec_link *l = me->l;

    me->l = NULL;
    if (me->forks != forked_count())
        return;
    Py_BEGIN_ALLOW_THREADS
    tenrec_link_drop(l);
    Py_END_ALLOW_THREADS
}

static void link_dealloc(PyObject *self)
{
    struct link *me = (struct link *)self;

    link_release(me);
    Py_XDECREF(me->worker);
    Py_XDECREF(me->name);
    python_free(self);
    garbage_drain();
}

static PyObject *link_drop(PyObject *self, PyObject *unused)
{
    (void)unused;
    link_release((struct link *)self);
    garbage_drain();
    Py_RETURN_NONE;
}

static PyObject *link_name(PyObject *self, void *unused)
{
    struct link *me = (struct link *)self;

    (void)unused;
    if (me->name)
        return Py_NewRef(me->name);
    PyErr_SetString(PyExc_ValueError, "this Link was not made by Tenrec");
    return NULL;
}

static PyMethodDef link_methods[] = {
    { "drop", link_drop, METH_NOARGS, "Ends the link, unless another shares it." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef link_properties[] = {
    { "name", link_name, NULL, "The name of the peer, for calls.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

bool link_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, link_dealloc },
        { Py_tp_methods, link_methods },
        { Py_tp_getset, link_properties },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.Link", sizeof(struct link), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots };
    PyObject *type = python_add_type(module, &spec);

    Py_XDECREF(type); /* the module has it */
    return type;
}
