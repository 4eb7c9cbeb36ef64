/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include "error.h"
#include "value.h"
#include "worker.h"

#include <stdlib.h>
#include <tenrec/group.h>

static PyObject *group_entry(const struct tenrec_worker_info *info)
{
    return Py_BuildValue("is", (int)info->id, info->name);
}

static PyObject *group_entries(const struct tenrec_worker_info *info, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);

    for (size_t i = 0; list && i < n; i++) {
        PyObject *member = group_entry(&info[i]);

        if (!member || PyList_SetItem(list, (Py_ssize_t)i, member) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *group_info(PyObject *worker, PyObject *name)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_worker_info info;
    const char *text = NULL;
    tenrec_error err;

    if (!w)
        return NULL;
    if (name != Py_None) {
        text = PyUnicode_AsUTF8AndSize(name, NULL);
        if (!text)
            return NULL;
    }
    if (tenrec_get_worker_info(w, text, &info, &err))
        return error_raise(&err);
    return group_entry(&info);
}

PyObject *group_infos(PyObject *worker, PyObject *unused)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_worker_info *infos = NULL;
    size_t room = 0, n = 16; /* a first guess */
    PyObject *list;
    tenrec_error err;

    (void)unused;
    if (!w)
        return NULL;
    while (n > room) {
        room = n;
        free(infos);
        infos = calloc(room, sizeof *infos);
        if (!infos)
            return PyErr_NoMemory();
        if (tenrec_worker_get_infos(w, infos, room, &n, &err)) {
            free(infos);
            return error_raise(&err);
        }
    }
    list = group_entries(infos, n);
    free(infos);
    return list;
}

PyObject *group_view(PyObject *worker, PyObject *unused)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_group_view *view;
    PyObject *made;
    tenrec_error err;

    (void)unused;
    if (!w)
        return NULL;
    if (tenrec_group_view_get(w, &view, &err))
        return error_raise(&err);
    made = Py_BuildValue("KN", (unsigned long long)view->version,
                         group_entries(view->member, view->n));
    tenrec_group_view_drop(view);
    return made;
}

static PyObject *group_wait(PyObject *worker, PyObject *args, bool for_members)
{
    struct tenrec_worker *w = worker_of(worker);
    unsigned long long n;
    tenrec_status st;
    tenrec_error err;
    long long ms;

    if (!w || !PyArg_ParseTuple(args, "KL", &n, &ms))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = for_members ? tenrec_group_wait_members(w, n, ms, &err)
                     : tenrec_group_wait_version(w, n, ms, &err);
    Py_END_ALLOW_THREADS
    if (st)
        return error_raise(&err);
    Py_RETURN_NONE;
}

PyObject *group_wait_version(PyObject *worker, PyObject *args)
{
    return group_wait(worker, args, false);
}

PyObject *group_wait_members(PyObject *worker, PyObject *args)
{
    return group_wait(worker, args, true);
}

/* ---- collectives ---------------------------------------------------------------------- */

/* Names of workers, borrowed from the tuple; free the array. NULL and n = 0 for None. */
static bool group_names(PyObject *tuple, const char ***ret, size_t *ret_n)
{
    const Py_ssize_t n = tuple == Py_None ? 0 : PyTuple_Size(tuple);
    const char **names;

    *ret = NULL;
    *ret_n = 0;
    if (tuple == Py_None)
        return true;
    names = n < 0 ? NULL : calloc(n ? (size_t)n : 1, sizeof *names);
    if (n >= 0 && !names)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; names && i < n; i++) {
        names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
        if (!names[i]) {
            free(names);
            return false;
        }
    }
    *ret = names;
    *ret_n = n < 0 ? 0 : (size_t)n;
    return names;
}

PyObject *group_barrier(PyObject *worker, PyObject *args)
{
    struct tenrec_worker *w = worker_of(worker);
    const char **names;
    tenrec_status st;
    PyObject *tuple;
    tenrec_error err;
    long long ms;
    size_t n;

    if (!w || !PyArg_ParseTuple(args, "OL", &tuple, &ms) || !group_names(tuple, &names, &n))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_worker_barrier(w, names, n, ms, &err);
    Py_END_ALLOW_THREADS
    free(names);
    if (st)
        return error_raise(&err);
    Py_RETURN_NONE;
}

PyObject *group_all_gather(PyObject *worker, PyObject *args)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_value *all = NULL;
    PyObject *value, *tuple, *made = NULL;
    struct values values;
    const char **names;
    tenrec_status st;
    tenrec_error err;
    long long ms;
    size_t n;

    if (!w || !PyArg_ParseTuple(args, "OOL", &value, &tuple, &ms) ||
        !group_names(tuple, &names, &n))
        return NULL;
    if (values_read_one(&values, value, false)) {
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_worker_all_gather(w, values.item, names, n, ms, &all, &err);
        Py_END_ALLOW_THREADS
        made = st ? error_raise(&err) : value_to_python(all, worker);
    }
    values_finish(&values);
    tenrec_value_drop(all);
    free(names);
    return made;
}
