/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "future.h"
#include "link.h"
#include "region.h"
#include "weights.h"

#include <tenrec/config.h>

/* Running functions have this time, in milliseconds, when a program ends without a shutdown. */
#define STOP_MS 5000

struct worker *worker_checked(PyObject *self)
{
    struct worker *me = (struct worker *)self;

    if (me->w && me->forks == forked_count())
        return me;
    if (me->w)
        PyErr_SetString(PyExc_RuntimeError, "this worker is that of the parent process, before "
                                            "fork: a child makes one of its own");
    else
        PyErr_SetString(PyExc_ValueError, "this worker is not open: call Worker.__init__ first");
    return NULL;
}

bool worker_is_own(const PyObject *self)
{
    return ((const struct worker *)(const void *)self)->forks == forked_count();
}

struct tenrec_worker *worker_of(PyObject *self)
{
    struct worker *me = worker_checked(self);

    return me ? me->w : NULL;
}

/* ---- life -------------------------------------------------------------------------- */

/* Sets the values of a dict of texts; false with an exception. */
static bool worker_override(struct tenrec_config *config, PyObject *overrides)
{
    PyObject *key, *value;
    Py_ssize_t i = 0;
    tenrec_error err;

    while (PyDict_Next(overrides, &i, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        const char *text = name ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;

        if (!text)
            return false;
        if (tenrec_config_set(config, name, text, &err)) {
            error_raise(&err);
            return false;
        }
    }
    return true;
}

/* _open(path or None, text or None, overrides, as_tensor or None) */
static PyObject *worker_open(PyObject *self, PyObject *args)
{
    struct worker *me = (struct worker *)self;
    struct tenrec_config *config;
    const char *path, *text;
    PyObject *overrides, *as_tensor;
    tenrec_status st;
    tenrec_error err;

    if (!PyArg_ParseTuple(args, "zzO!O", &path, &text, &PyDict_Type, &overrides, &as_tensor))
        return NULL;
    if (me->w) {
        PyErr_SetString(PyExc_ValueError, "this worker is open already");
        return NULL;
    }
    st = text ? tenrec_config_parse(text, "config", &config, &err)
              : tenrec_config_load(path, &config, &err);
    if (st)
        return error_raise(&err);
    if (!worker_override(config, overrides)) {
        tenrec_config_drop(config);
        return NULL;
    }
    me->forks = forked_count();
    st = tenrec_worker_new(config, &me->w, &err);
    tenrec_config_drop(config);
    if (st)
        return error_raise(&err);
    if (as_tensor != Py_None)
        me->as_tensor = Py_NewRef(as_tensor);
    Py_RETURN_NONE;
}

struct life {
    struct wait wait; /* first */
    struct tenrec_worker *w;
    enum tenrec_shutdown_mode mode;
    int64_t ms;
};

static tenrec_status life_begin(void *self, tenrec_error *err)
{
    return tenrec_init_rpc(((struct life *)self)->w, err);
}

static tenrec_status life_shut(void *self, tenrec_error *err)
{
    const struct life *l = self;

    return tenrec_shutdown(l->w, l->mode, l->ms, err);
}

/* NULL with an exception. */
static PyObject *worker_live(PyObject *self, tenrec_status (*run)(void *self, tenrec_error *err),
                             enum tenrec_shutdown_mode mode, int64_t ms)
{
    struct worker *me = worker_checked(self);
    struct life *l = me ? wait_new(sizeof *l, self, NULL) : NULL;

    if (!l)
        return NULL;
    l->w = me->w;
    l->mode = mode;
    l->ms = ms;
    l->wait.run = run;
    if (wait_run(l))
        wait_end(l);
    garbage_drain();
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *worker_init_rpc(PyObject *self, PyObject *unused)
{
    (void)unused;
    return worker_live(self, life_begin, TENREC_GRACEFUL, 0);
}

/* _shutdown(graceful, ms) */
static PyObject *worker_shutdown(PyObject *self, PyObject *args)
{
    int graceful;
    long long ms;

    if (!PyArg_ParseTuple(args, "pL", &graceful, &ms))
        return NULL;
    return worker_live(self, life_shut, graceful ? TENREC_GRACEFUL : TENREC_IMMEDIATE, ms);
}

static void worker_end(struct worker *me)
{
    tenrec_error err;

    if (!me->w || me->abandoned || me->forks != forked_count())
        return;
    Py_BEGIN_ALLOW_THREADS
    if (tenrec_worker_running(me->w) &&
        tenrec_shutdown(me->w, TENREC_IMMEDIATE, STOP_MS, &err) == TENREC_ETIMEDOUT)
        me->abandoned = true;
    Py_END_ALLOW_THREADS
}

static PyObject *worker_stop(PyObject *self, PyObject *unused)
{
    (void)unused;
    worker_end((struct worker *)self);
    Py_RETURN_NONE;
}

static int worker_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct worker *me = (struct worker *)self;
    int stop = functions_traverse(&me->functions, visit, arg);

    if (!stop)
        stop = callbacks_traverse(&me->callbacks, visit, arg);
    Py_VISIT(me->as_tensor);
    Py_VISIT(Py_TYPE(self));
    return stop;
}

static int worker_clear(PyObject *self)
{
    struct worker *me = (struct worker *)self;

    worker_end(me); /* Worker.__del__ has done so */
    if (!me->abandoned) {
        functions_clear(&me->functions);
        callbacks_clear(&me->callbacks);
        Py_CLEAR(me->as_tensor);
    }
    return 0;
}

static void worker_dealloc(PyObject *self)
{
    struct worker *me = (struct worker *)self;
    struct tenrec_worker *w = me->w;

    PyObject_GC_UnTrack(self);
    worker_end(me);
    if (!me->abandoned) {
        Py_BEGIN_ALLOW_THREADS
        tenrec_worker_drop(w);
        Py_END_ALLOW_THREADS
        me->w = NULL; /* worker_clear looks once more */
    }
    worker_clear(self);
    python_free(self);
    garbage_drain();
}

static PyObject *worker_running(PyObject *self, void *unused)
{
    struct tenrec_worker *w = worker_of(self);

    (void)unused;
    return w ? PyBool_FromLong(tenrec_worker_running(w)) : NULL;
}

/* ---- loops of the program ----------------------------------------------------------- */

static PyObject *worker_fd(PyObject *self, PyObject *unused)
{
    struct tenrec_worker *w = worker_of(self);
    tenrec_error err;
    int fd;

    (void)unused;
    if (!w)
        return NULL;
    return tenrec_worker_get_fd(w, &fd, &err) ? error_raise(&err) : PyLong_FromLong(fd);
}

static PyObject *worker_dispatch(PyObject *self, PyObject *unused)
{
    struct tenrec_worker *w = worker_of(self);

    (void)unused;
    if (!w)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tenrec_worker_dispatch(w);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef worker_methods[] = {
    { "_open", worker_open, METH_VARARGS, NULL },
    { "_init_rpc", worker_init_rpc, METH_NOARGS, NULL },
    { "_shutdown", worker_shutdown, METH_VARARGS, NULL },
    { "_stop", worker_stop, METH_NOARGS, NULL },
    { "_register", function_register, METH_VARARGS, NULL },
    { "_call", call_sync, METH_VARARGS, NULL },
    { "_call_async", call_async, METH_VARARGS, NULL },
    { "_call_one_way", call_one_way, METH_VARARGS, NULL },
    { "_remote", call_remote, METH_VARARGS, NULL },
    { "_rref", call_rref, METH_O, NULL },
    { "_region", region_new, METH_VARARGS, NULL },
    { "_transfer", region_transfer, METH_VARARGS, NULL },
    { "_transfer_async", region_transfer_async, METH_VARARGS, NULL },
    { "_weights", weights_new, METH_VARARGS, NULL },
    { "_bind", link_bind, METH_O, NULL },
    { "_connect", link_connect, METH_O, NULL },
    { "_info", group_info, METH_O, NULL },
    { "_infos", group_infos, METH_NOARGS, NULL },
    { "_view", group_view, METH_NOARGS, NULL },
    { "_wait_version", group_wait_version, METH_VARARGS, NULL },
    { "_wait_members", group_wait_members, METH_VARARGS, NULL },
    { "_barrier", group_barrier, METH_VARARGS, NULL },
    { "_all_gather", group_all_gather, METH_VARARGS, NULL },
    { "_on_members", callback_on_members, METH_VARARGS, NULL },
    { "_on_peer_lost", callback_on_peer_lost, METH_O, NULL },
    { "_fd", worker_fd, METH_NOARGS, NULL },
    { "_dispatch", worker_dispatch, METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef worker_properties[] = {
    { "running", worker_running, NULL, "True between init_rpc and shutdown.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

bool worker_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, worker_dealloc },   { Py_tp_traverse, worker_traverse },
        { Py_tp_clear, worker_clear },       { Py_tp_methods, worker_methods },
        { Py_tp_getset, worker_properties }, { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.Worker", sizeof(struct worker), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                slots };
    PyObject *type = python_add_type(module, &spec);

    Py_XDECREF(type); /* the module has it */
    return type;
}
