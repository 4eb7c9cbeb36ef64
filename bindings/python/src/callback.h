/* SPDX-License-Identifier: Apache-2.0 */
/* callback.h - Python functions that run on changes of the group. */
#ifndef PYTHON_CALLBACK_H
#define PYTHON_CALLBACK_H

#include "python.h"

/* The callbacks of one worker, each NULL or shared; with the GIL. */
struct callbacks {
    PyObject *joined, *left, *lost;
};

/* The methods Worker._on_members(joined, left) and Worker._on_peer_lost(lost). */
PyObject *callback_on_members(PyObject *worker, PyObject *args);
PyObject *callback_on_peer_lost(PyObject *worker, PyObject *lost);

int callbacks_traverse(struct callbacks *c, visitproc visit, void *arg);
void callbacks_clear(struct callbacks *c);

#endif
