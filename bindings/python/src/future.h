/* SPDX-License-Identifier: Apache-2.0 */
/* future.h - the base of tenrec.Future. */
#ifndef PYTHON_FUTURE_H
#define PYTHON_FUTURE_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/future.h>

bool future_add_type(PyObject *module);

/* The class of the futures that are made from now on, which extends the base. */
void future_use(PyObject *type);

/* Makes a tenrec.Future; NULL with an exception.
 *
 * f        taken always
 * worker   the tenrec.Worker of the call
 */
PyObject *future_wrap(struct tenrec_future *f, PyObject *worker);

/* Waits, and returns the result or raises the error of `f`. A signal, such as Ctrl-C, that raises
 * an exception ends the wait on the main thread.
 *
 * ms       TENREC_TIMEOUT_NONE: until the future is done
 */
PyObject *future_result(struct tenrec_future *f, int64_t ms, PyObject *worker);

#endif
