/* SPDX-License-Identifier: Apache-2.0 */
/* rref.h - the base of tenrec.RRef. */
#ifndef PYTHON_RREF_H
#define PYTHON_RREF_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/rref.h>

bool rref_add_type(PyObject *module);

/* The class of the references that are made from now on, which extends the base. */
void rref_use(PyObject *type);

/* Makes a tenrec.RRef; NULL with an exception.
 *
 * r        taken always
 */
PyObject *rref_wrap(struct tenrec_rref *r, PyObject *worker);

/* The reference of a tenrec.RRef, borrowed from it; NULL, without an exception, for another
 * object. */
struct tenrec_rref *rref_of(PyObject *o);

#endif
