/* SPDX-License-Identifier: Apache-2.0 */
/* function.h - Python functions that other workers call. */
#ifndef PYTHON_FUNCTION_H
#define PYTHON_FUNCTION_H

#include "python.h"

/* The functions of one worker; with the GIL. */
struct functions {
    struct function *first;
};

/* The method Worker._register(name, function). */
PyObject *function_register(PyObject *worker, PyObject *args);

int functions_traverse(struct functions *f, visitproc visit, void *arg);

/* Frees them; none runs, and none will. */
void functions_clear(struct functions *f);

#endif
