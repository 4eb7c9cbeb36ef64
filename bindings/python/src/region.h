/* SPDX-License-Identifier: Apache-2.0 */
/* region.h - the base of tenrec.Region, and transfers. */
#ifndef PYTHON_REGION_H
#define PYTHON_REGION_H

#include "python.h"

#include <stdbool.h>

bool region_add_type(PyObject *module);

/* The class of the regions that are made from now on, which extends the base. */
void region_use(PyObject *type);

/* Methods of tenrec_rpc._core.Worker: _region(memory, rights), and, for a tuple of entries
 * (writes, reference, offset, memory), _transfer(entries, ms) and _transfer_async. */
PyObject *region_new(PyObject *worker, PyObject *args);
PyObject *region_transfer(PyObject *worker, PyObject *args);
PyObject *region_transfer_async(PyObject *worker, PyObject *args);

#endif
