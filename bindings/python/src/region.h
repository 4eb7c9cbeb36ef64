/* SPDX-License-Identifier: Apache-2.0 */
/* region.h - the base of tenrec.Region, and transfers. */
#ifndef PYTHON_REGION_H
#define PYTHON_REGION_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/region.h>

bool region_add_type(PyObject *module);

/* The classes of the regions, which extends the base, and of the references that are made from now
 * on. */
void region_use(PyObject *type, PyObject *ref);

/* Makes a tenrec.RegionRef; NULL with an exception. */
PyObject *region_ref_wrap(const struct tenrec_region_ref *ref);

/* Returns true for a tenrec.RegionRef. */
bool region_ref_is(PyObject *o);

/* Reads the bytes of a reference; false with an exception. */
bool region_ref_read(const char *bytes, Py_ssize_t n, struct tenrec_region_ref *ret);

/* Methods of tenrec_rpc._core.Worker: _region(memory, rights), and, for a tuple of entries
 * (writes, reference, offset, memory), _transfer(entries, ms, then or None, args) and
 * _transfer_async. */
PyObject *region_new(PyObject *worker, PyObject *args);
PyObject *region_transfer(PyObject *worker, PyObject *args);
PyObject *region_transfer_async(PyObject *worker, PyObject *args);

#endif
