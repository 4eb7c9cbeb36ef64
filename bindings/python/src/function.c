/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "value.h"

#include <stdlib.h>
#include <string.h>

struct function {
    struct function *next;
    PyObject *python;
    PyObject *worker; /* borrowed: it waits for its functions before it is freed */
};

/* A last argument {"**": {...}} has the keyword arguments. */
static bool function_has_keywords(const struct tenrec_value *args, size_t n)
{
    const struct tenrec_value *last = n ? &args[n - 1] : NULL;

    return last && last->type == TENREC_VALUE_MAP && last->n == 1 &&
           strcmp(last->u.map[0].key, "**") == 0 && last->u.map[0].value.type == TENREC_VALUE_MAP;
}

/* ret_keywords: owned; NULL for none. Returns NULL with an exception. */
static PyObject *function_args(struct tenrec_call *call, PyObject *worker, PyObject **ret_keywords)
{
    size_t n;
    const struct tenrec_value *from = tenrec_call_args(call, &n);
    const bool keywords = function_has_keywords(from, n);
    PyObject *args;

    *ret_keywords = keywords ? value_to_python(&from[n - 1].u.map[0].value, worker) : NULL;
    if (keywords && !*ret_keywords)
        return NULL;
    n -= keywords;
    args = PyTuple_New((Py_ssize_t)n);

    for (size_t i = 0; args && i < n; i++) {
        PyObject *arg = value_to_python(&from[i], worker);

        if (!arg || PyTuple_SetItem(args, (Py_ssize_t)i, arg) < 0)
            Py_CLEAR(args);
    }
    return args;
}

tenrec_status function_return(struct tenrec_call *call, PyObject *result, tenrec_error *err)
{
    struct values values;
    tenrec_status st;

    /* The caller may want a reference: only Tenrec knows whether the result has to travel. */
    if (!values_read_one(&values, result, true)) {
        st = error_catch(err);
    } else if (!values.bulky) {
        st = tenrec_call_return(call, values.item, err);
    } else {
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_call_return(call, values.item, err);
        Py_END_ALLOW_THREADS
    }
    values_finish(&values);
    return st;
}

/* Answers a call; on a thread of the pool. */
static tenrec_status function_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct function *f = arg;
    PyGILState_STATE gil = gil_take();
    PyObject *keywords, *args = function_args(call, f->worker, &keywords);
    PyObject *python = Py_NewRef(f->python), *result;
    const unsigned forks = forked_count();
    tenrec_status st;

    /* A function that outlasts the shutdown of its worker outlasts `f`, too. */
    result = args ? PyObject_Call(python, args, keywords) : NULL;
    if (forked_since(forks)) {
        PyGILState_Release(gil);
        return TENREC_OK;
    }
    st = result ? function_return(call, result, err) : error_catch(err);
    Py_XDECREF(result);
    Py_DECREF(python);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    garbage_drain();
    PyGILState_Release(gil);
    return st;
}

/* Begins a call of a coroutine function: start(answer, args, keywords or None). */
static tenrec_status function_begin(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct function *f = arg;
    PyGILState_STATE gil = gil_take();
    PyObject *keywords, *args = function_args(call, f->worker, &keywords);
    PyObject *start = Py_NewRef(f->python);
    PyObject *answer = args ? answer_new(call, f->worker) : NULL, *begun = NULL;
    const unsigned forks = forked_count();
    tenrec_status st = TENREC_OK;

    if (answer)
        begun =
            PyObject_CallFunctionObjArgs(start, answer, args, keywords ? keywords : Py_None, NULL);
    if (forked_since(forks)) {
        PyGILState_Release(gil);
        return TENREC_OK;
    }
    if (!begun) {
        st = error_catch(err); /* which answers the call */
        if (answer && !answer_forget(answer))
            st = TENREC_OK;
    }
    Py_XDECREF(begun);
    Py_XDECREF(answer);
    Py_DECREF(start);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    garbage_drain();
    PyGILState_Release(gil);
    return st;
}

PyObject *function_register(PyObject *worker, PyObject *args)
{
    struct worker *me = worker_checked(worker);
    struct function *f;
    PyObject *python;
    const char *name;
    int later;
    tenrec_status st;
    tenrec_error err;

    if (!me || !PyArg_ParseTuple(args, "sOp", &name, &python, &later))
        return NULL;
    f = calloc(1, sizeof *f);
    if (!f)
        return PyErr_NoMemory();
    f->python = Py_NewRef(python);
    f->worker = worker;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_worker_register_function(me->w, name, later ? function_begin : function_answer, f,
                                         later ? TENREC_LATER : TENREC_POOL, &err);
    Py_END_ALLOW_THREADS
    if (st) {
        Py_DECREF(f->python);
        free(f);
        return error_raise(&err);
    }
    f->next = me->functions.first;
    me->functions.first = f;
    Py_RETURN_NONE;
}

int functions_traverse(struct functions *all, visitproc visit, void *arg)
{
    for (struct function *f = all->first; f; f = f->next)
        Py_VISIT(f->python);
    return 0;
}

void functions_clear(struct functions *all)
{
    struct function *f = all->first, *next;

    all->first = NULL;
    for (; f; f = next) {
        next = f->next;
        Py_DECREF(f->python);
        free(f);
    }
}
