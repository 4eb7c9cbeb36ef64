/* SPDX-License-Identifier: Apache-2.0 */
/* future.h - the base of tenrec.Future. */
#ifndef PYTHON_FUTURE_H
#define PYTHON_FUTURE_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/error.h>
#include <tenrec/future.h>

bool future_add_type(PyObject *module);

/* The classes of the futures that are made from now on, which extend the base: of all but
 * transfers, and of transfers. */
void future_use(PyObject *type, PyObject *transfer);

/* Makes a tenrec.Future; NULL with an exception.
 *
 * f        taken always
 * worker   the tenrec.Worker of the call
 */
PyObject *future_wrap(struct tenrec_future *f, PyObject *worker);

/* Likewise a tenrec.Transfer.
 *
 * visible, buffers_free    the earlier ends; taken always
 */
PyObject *future_wrap_transfer(struct tenrec_future *f, struct tenrec_future *visible,
                               struct tenrec_future *buffers_free, PyObject *worker);

/* Waits, and returns the result or raises the error of `f`. A signal, such as Ctrl-C, that raises
 * an exception ends the wait on the main thread.
 *
 * ms       TENREC_TIMEOUT_NONE: until the future is done
 */
PyObject *future_result(struct tenrec_future *f, int64_t ms, PyObject *worker);

/* wait.c: operations of the library that block without a future. The main thread, which alone
 * handles signals, lets another thread run them, so that KeyboardInterrupt can end its wait. */

/* A signal interrupts a wait of the main thread at the latest after this time. */
#define WAIT_SLICE_MS 200

/* Begins the struct of an operation. */
struct wait {
    struct garbage garbage; /* first */
    tenrec_status (*run)(void *self, tenrec_error *err);
    void (*release)(void *self); /* frees what the rest of the struct owns; NULL: nothing */
    PyObject *kept[2];           /* objects whose memory `run` uses; shared */
    struct tenrec_value *value;  /* what `run` returns, of a future; owned, NULL: nil */
};

/* Allocates an operation, zeroed but for `kept`; NULL with an exception. */
void *wait_new(size_t size, PyObject *first, PyObject *second);

/* Runs it without the GIL. Returns false, with an exception and the operation freed, if it fails or
 * a signal handler raises; then it goes on until its limit, and is freed after that. */
bool wait_run(void *self);

/* Begins it on a thread of its own, and returns its tenrec.Future. Frees it in the end, also after
 * a failure: NULL with an exception. A cancel ends the wait, not the operation. */
PyObject *wait_begin(void *self, PyObject *worker);

/* Frees an operation for which wait_run has returned true, or that was not run. */
void wait_end(void *self);

#endif
