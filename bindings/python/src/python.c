/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#include <assert.h>
#include <string.h>

#define HELD_MAX 16

static PyObject **held[HELD_MAX];
static size_t n_held;
static PyObject *owner;

void python_own(PyObject *module)
{
    owner = module;
}

void python_hold(PyObject **variable, PyObject *o)
{
    PyObject *former = *variable;
    size_t i = 0;

    while (i < n_held && held[i] != variable)
        i++;
    assert(i < HELD_MAX);
    if (i == n_held)
        held[n_held++] = variable;
    *variable = Py_XNewRef(o);
    Py_XDECREF(former);
}

int python_traverse(PyObject *module, visitproc visit, void *arg)
{
    for (size_t i = 0; i < n_held && module == owner; i++)
        Py_VISIT(*held[i]);
    return 0;
}

int python_clear(PyObject *module)
{
    for (size_t i = 0; i < n_held && module == owner; i++)
        Py_CLEAR(*held[i]);
    return 0;
}

PyObject *python_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *python_new(PyObject *type)
{
    if (type)
        return PyType_GenericAlloc((PyTypeObject *)type, 0);
    PyErr_SetString(PyExc_RuntimeError, "the interpreter ends");
    return NULL;
}

void python_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

PyObject *python_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}
