/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "future.h"
#include "value.h"

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

struct group_wait {
    struct wait wait; /* first */
    struct tenrec_worker *w;
    uint64_t n;
    int64_t ms;
};

static tenrec_status group_until_version(void *self, tenrec_error *err)
{
    const struct group_wait *g = self;

    return tenrec_group_wait_version(g->w, g->n, g->ms, err);
}

static tenrec_status group_until_members(void *self, tenrec_error *err)
{
    const struct group_wait *g = self;

    return tenrec_group_wait_members(g->w, g->n, g->ms, err);
}

static PyObject *group_wait(PyObject *worker, PyObject *args,
                            tenrec_status (*run)(void *self, tenrec_error *err))
{
    struct tenrec_worker *w = worker_of(worker);
    struct group_wait *g;
    unsigned long long n;
    long long ms;

    if (!w || !PyArg_ParseTuple(args, "KL", &n, &ms))
        return NULL;
    g = wait_new(sizeof *g, worker, NULL);
    if (!g)
        return NULL;
    g->wait.run = run;
    g->w = w;
    g->n = n;
    g->ms = ms;
    if (!wait_run(g))
        return NULL;
    wait_end(g);
    Py_RETURN_NONE;
}

PyObject *group_wait_version(PyObject *worker, PyObject *args)
{
    return group_wait(worker, args, group_until_version);
}

PyObject *group_wait_members(PyObject *worker, PyObject *args)
{
    return group_wait(worker, args, group_until_members);
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

/* A barrier, or a gather of `values`. */
struct gather {
    struct wait wait; /* first */
    struct tenrec_worker *w;
    const char **names; /* owns; the texts are those of the kept tuple */
    size_t n;
    int64_t ms;
    struct values values;
    struct tenrec_value *all; /* owns */
};

static void gather_release(void *self)
{
    struct gather *g = self;

    free(g->names);
    values_finish(&g->values);
    tenrec_value_drop(g->all);
}

static tenrec_status gather_barrier(void *self, tenrec_error *err)
{
    const struct gather *g = self;

    return tenrec_worker_barrier(g->w, g->names, g->n, g->ms, err);
}

static tenrec_status gather_all(void *self, tenrec_error *err)
{
    struct gather *g = self;

    return tenrec_worker_all_gather(g->w, g->values.item, g->names, g->n, g->ms, &g->all, err);
}

/* value: NULL for a barrier. Returns NULL with an exception. */
static struct gather *gather_new(PyObject *worker, PyObject *value, PyObject *names, int64_t ms)
{
    struct tenrec_worker *w = worker_of(worker);
    struct gather *g = w ? wait_new(sizeof *g, worker, names) : NULL;

    if (!g)
        return NULL;
    g->wait.run = value ? gather_all : gather_barrier;
    g->wait.release = gather_release;
    g->w = w;
    g->ms = ms;
    if (group_names(names, &g->names, &g->n) &&
        (!value || values_read_one(&g->values, value, false)))
        return g;
    wait_end(g);
    return NULL;
}

PyObject *group_barrier(PyObject *worker, PyObject *args)
{
    struct gather *g;
    PyObject *names;
    long long ms;

    if (!PyArg_ParseTuple(args, "OL", &names, &ms))
        return NULL;
    g = gather_new(worker, NULL, names, ms);
    if (!g || !wait_run(g))
        return NULL;
    wait_end(g);
    Py_RETURN_NONE;
}

PyObject *group_all_gather(PyObject *worker, PyObject *args)
{
    PyObject *value, *names, *made;
    struct gather *g;
    long long ms;

    if (!PyArg_ParseTuple(args, "OOL", &value, &names, &ms))
        return NULL;
    g = gather_new(worker, value, names, ms);
    if (!g || !wait_run(g))
        return NULL;
    made = value_to_python(g->all, worker);
    wait_end(g);
    return made;
}
