/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - the base of tenrec.Link. */
#ifndef PYTHON_LINK_H
#define PYTHON_LINK_H

#include "python.h"

#include <stdbool.h>

bool link_add_type(PyObject *module);

/* The class of the links that are made from now on, which extends the base. */
void link_use(PyObject *type);

/* Methods of tenrec_rpc._core.Worker: _bind(with_secret) and _connect(record). */
PyObject *link_bind(PyObject *worker, PyObject *with_secret);
PyObject *link_connect(PyObject *worker, PyObject *record);

#endif
