/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the base of tenrec.Worker. */
#ifndef PYTHON_WORKER_H
#define PYTHON_WORKER_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/rpc.h>

bool worker_add_type(PyObject *module);

/* The worker of a tenrec.Worker, borrowed from it; NULL with an exception before Worker.__init__,
 * and in a child of the process that opened it. */
struct tenrec_worker *worker_of(PyObject *self);

/* The function that a received tensor passes through, borrowed; NULL for none. */
PyObject *worker_as_tensor(PyObject *self);

struct functions;
struct callbacks;

/* What Python gave to the worker; the same errors as worker_of. */
struct functions *worker_functions(PyObject *self);
struct callbacks *worker_callbacks(PyObject *self);

#endif
