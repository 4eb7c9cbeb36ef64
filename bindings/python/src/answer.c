/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - the answer of a call whose function has returned: that of a coroutine, or of
 * TENREC_LATER. */
#include "value.h"
#include "worker.h"

struct answer {
    PyObject_HEAD
    struct tenrec_call *call; /* NULL after the answer */
    PyObject *worker;
    unsigned forks; /* forked_count of the process that has the call */
};

static PyObject *answer_type;

PyObject *answer_new(struct tenrec_call *call, PyObject *worker)
{
    struct answer *me = (struct answer *)python_new(answer_type);

    if (!me)
        return NULL;
    me->call = call;
    me->worker = Py_NewRef(worker);
    me->forks = forked_count();
    return (PyObject *)me;
}

bool answer_forget(PyObject *self)
{
    struct answer *me = (struct answer *)self;
    const bool open = me->call != NULL;

    me->call = NULL;
    return open;
}

/* Takes the call; NULL with an exception if it is answered, or this process is a child. */
static struct tenrec_call *answer_take(struct answer *me)
{
    struct tenrec_call *call = me->forks == forked_count() ? me->call : NULL;

    me->call = NULL;
    if (!call)
        PyErr_SetString(PyExc_RuntimeError, "the call has an answer already");
    return call;
}

static void answer_finish(struct tenrec_call *call, tenrec_status st, const tenrec_error *err)
{
    Py_BEGIN_ALLOW_THREADS
    tenrec_call_finish(call, st == TENREC_OK ? NULL : err);
    Py_END_ALLOW_THREADS
    garbage_drain();
}

static PyObject *answer_give(PyObject *self, PyObject *result)
{
    struct tenrec_call *call = answer_take((struct answer *)self);
    tenrec_status st;
    tenrec_error err;

    if (!call)
        return NULL;
    st = function_return(call, result, &err);
    answer_finish(call, st, &err);
    Py_RETURN_NONE;
}

static PyObject *answer_fail(PyObject *self, PyObject *exception)
{
    struct tenrec_call *call = answer_take((struct answer *)self);
    tenrec_error err;

    if (!call)
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    error_catch(&err);
    answer_finish(call, err.code, &err);
    Py_RETURN_NONE;
}

static void answer_dealloc(PyObject *self)
{
    struct answer *me = (struct answer *)self;
    tenrec_error err;

    if (me->call && me->forks == forked_count()) {
        tenrec_fail(&err, TENREC_ECANCELED, "the function ended without an answer");
        answer_finish(me->call, err.code, &err);
    }
    Py_XDECREF(me->worker);
    python_free(self);
}

static PyMethodDef answer_methods[] = {
    { "give", answer_give, METH_O, "Answers with a result." },
    { "fail", answer_fail, METH_O, "Answers with an exception." },
    { NULL, NULL, 0, NULL },
};

bool answer_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, answer_dealloc },
        { Py_tp_methods, answer_methods },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.Answer", sizeof(struct answer), 0,
                                Py_TPFLAGS_DEFAULT, slots };
    PyObject *type = python_add_type(module, &spec);

    if (!type)
        return false;
    python_hold(&answer_type, type);
    Py_DECREF(type);
    return true;
}
