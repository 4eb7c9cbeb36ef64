/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - errors of Tenrec as exceptions, and exceptions as errors. */
#ifndef PYTHON_ERROR_H
#define PYTHON_ERROR_H

#include "python.h"

#include <tenrec/error.h>

/* The functions of tenrec/errors.py that make an exception, and describe one; shared. */
void error_use(PyObject *make, PyObject *describe);

/* Raises the exception of `err`. Returns NULL, so that a function can end with it. */
PyObject *error_raise(const tenrec_error *err);

/* Clears the exception that a function raised, and returns it as the error for its caller. */
tenrec_status error_catch(tenrec_error *err);

#endif
