/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - Python.h, limited to the stable interface of 3.11 (set by meson.build). */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef Py_LIMITED_API
#error "compile with -DPy_LIMITED_API=0x030B0000"
#endif

/* Lets a static variable share `o`; NULL is allowed. The module traverses and clears all these
 * variables, so that the interpreter can free what they reach: they are NULL once it ends. */
void python_hold(PyObject **variable, PyObject *o);
/* The module of these variables, the last that was imported; borrowed. */
void python_own(PyObject *module);
int python_traverse(PyObject *module, visitproc visit, void *arg);
int python_clear(PyObject *module);

/* A text of the library or of another process, of any bytes, as a str. */
PyObject *python_text(const char *text);

/* Makes an object of `type`, zeroed; NULL with an exception. */
PyObject *python_new(PyObject *type);

/* Frees the memory of an object, and its share of its type: the end of a tp_dealloc. */
void python_free(PyObject *self);

/* Makes a type from its spec and adds it to the module; NULL with an exception. */
PyObject *python_add_type(PyObject *module, PyType_Spec *spec);

#endif
