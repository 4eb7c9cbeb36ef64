/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <tenrec/group.h>

/* Calls *function, which another thread may replace meanwhile; on a thread of Tenrec, with the
 * GIL.
 *
 * args     taken; NULL: an exception, which is reported
 */
static void callback_run(PyObject *const *function, PyObject *args)
{
    PyObject *called = Py_XNewRef(*function), *result = NULL;
    const unsigned forks = forked_count();

    if (called && args)
        result = PyObject_Call(called, args, NULL);
    if (forked_since(forks))
        return;
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(called);
    Py_XDECREF(result);
    Py_XDECREF(called);
    Py_XDECREF(args);
}

static void callback_lost(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why,
                          void *arg)
{
    struct tenrec_worker_info info = { .name = "" };
    PyGILState_STATE gil = gil_take();
    struct callbacks *c = arg;

    tenrec_worker_get_info_by_id(w, id, &info, NULL);
    callback_run(&c->lost, Py_BuildValue("issN", (int)id, info.name, tenrec_status_name(why->code),
                                         python_text(why->text)));
    PyGILState_Release(gil);
}

static void callback_joined(struct tenrec_worker *w, const struct tenrec_worker_info *member,
                            uint64_t version, void *arg)
{
    PyGILState_STATE gil = gil_take();
    struct callbacks *c = arg;

    (void)w;
    callback_run(&c->joined,
                 Py_BuildValue("isK", (int)member->id, member->name, (unsigned long long)version));
    PyGILState_Release(gil);
}

static void callback_left(struct tenrec_worker *w, const struct tenrec_worker_info *member,
                          const tenrec_error *why, uint64_t version, void *arg)
{
    PyGILState_STATE gil = gil_take();
    struct callbacks *c = arg;

    (void)w;
    callback_run(&c->left, Py_BuildValue("issNK", (int)member->id, member->name,
                                         tenrec_status_name(why->code), python_text(why->text),
                                         (unsigned long long)version));
    PyGILState_Release(gil);
}

static void callback_set(PyObject **ret, PyObject *function)
{
    PyObject *former = *ret;

    *ret = function == Py_None ? NULL : Py_NewRef(function);
    Py_XDECREF(former);
}

PyObject *callback_on_members(PyObject *worker, PyObject *args)
{
    struct worker *me = worker_checked(worker);
    struct callbacks *c = me ? &me->callbacks : NULL;
    struct tenrec_member_callbacks set = {
        .size = sizeof set, .joined = callback_joined, .left = callback_left, .arg = c
    };
    PyObject *joined, *left;
    tenrec_status st;
    tenrec_error err;

    if (!me || !PyArg_ParseTuple(args, "OO", &joined, &left))
        return NULL;
    callback_set(&c->joined, joined);
    callback_set(&c->left, left);
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_worker_set_member_callbacks(me->w, &set, &err);
    Py_END_ALLOW_THREADS
    if (st)
        return error_raise(&err);
    Py_RETURN_NONE;
}

PyObject *callback_on_peer_lost(PyObject *worker, PyObject *lost)
{
    struct worker *me = worker_checked(worker);
    struct callbacks *c = me ? &me->callbacks : NULL;

    if (!me)
        return NULL;
    callback_set(&c->lost, lost);
    Py_BEGIN_ALLOW_THREADS
    tenrec_worker_set_peer_lost_callback(me->w, callback_lost, c);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

int callbacks_traverse(struct callbacks *c, visitproc visit, void *arg)
{
    Py_VISIT(c->joined);
    Py_VISIT(c->left);
    Py_VISIT(c->lost);
    return 0;
}

void callbacks_clear(struct callbacks *c)
{
    Py_CLEAR(c->joined);
    Py_CLEAR(c->left);
    Py_CLEAR(c->lost);
}
