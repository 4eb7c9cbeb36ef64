/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - Python.h, limited to the stable interface of 3.11 (set by meson.build). */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef Py_LIMITED_API
#error "compile with -DPy_LIMITED_API=0x030B0000"
#endif

/* Makes an object of `type`, zeroed; NULL with an exception. */
PyObject *python_new(PyObject *type);

/* Frees the memory of an object, and its share of its type: the end of a tp_dealloc. */
void python_free(PyObject *self);

/* Makes a type from its spec and adds it to the module; NULL with an exception. */
PyObject *python_add_type(PyObject *module, PyType_Spec *spec);

#endif
