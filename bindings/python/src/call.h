/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - calls of other workers: methods of tenrec_rpc._core.Worker. */
#ifndef PYTHON_CALL_H
#define PYTHON_CALL_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/rpc.h>

#include "value.h"

/* What a call needs, from the arguments (..., function, args, ms) of a method. Finish it, also
 * after a failure, which returns false with an exception. */
struct call {
    const char *to; /* NULL in a call of a reference */
    const char *function;
    struct values args;
    struct tenrec_call_options options;
};

bool call_read(struct call *c, PyObject *args);
bool call_read_of_rref(struct call *c, PyObject *args);
void call_finish(struct call *c);

/* The result of a call; st: the status of the start of its future. */
PyObject *call_result(tenrec_status st, struct tenrec_future *f, const tenrec_error *err,
                      PyObject *worker);

/* _call(to, function, args, ms), _call_async and _remote likewise; _rref(value) */
PyObject *call_sync(PyObject *worker, PyObject *args);
PyObject *call_async(PyObject *worker, PyObject *args);
PyObject *call_remote(PyObject *worker, PyObject *args);
PyObject *call_rref(PyObject *worker, PyObject *value);

#endif
