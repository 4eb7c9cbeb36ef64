/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - the base of tenrec.Weights: a handle on a set of weights. */
#ifndef PYTHON_WEIGHTS_H
#define PYTHON_WEIGHTS_H

#include "python.h"

#include <stdbool.h>

bool weights_add_type(PyObject *module);

/* The class of the handles that are made from now on, which extends the base. */
void weights_use(PyObject *type);

/* The method Worker._weights(set, keeper). */
PyObject *weights_new(PyObject *worker, PyObject *args);

#endif
