/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - operations of the library that block without a future. The main thread, which alone
 * handles signals, lets another thread run them, so that KeyboardInterrupt can end its wait. */
#ifndef PYTHON_WAIT_H
#define PYTHON_WAIT_H

#include "python.h"

#include "garbage.h"

#include <stdbool.h>
#include <tenrec/error.h>

/* A signal interrupts a wait of the main thread at the latest after this time. */
#define WAIT_SLICE_MS 200

/* Begins the struct of an operation. */
struct wait {
    struct garbage garbage; /* first */
    tenrec_status (*run)(void *self, tenrec_error *err);
    void (*release)(void *self); /* frees what the rest of the struct owns; NULL: nothing */
    PyObject *kept[2];           /* objects whose memory `run` uses; shared */
};

/* Allocates an operation, zeroed but for `kept`; NULL with an exception. */
void *wait_new(size_t size, PyObject *first, PyObject *second);

/* Runs it without the GIL. Returns false, with an exception and the operation freed, if it fails or
 * a signal handler raises; then it goes on until its limit, and is freed after that. */
bool wait_run(void *self);

/* Frees an operation for which wait_run has returned true, or that was not run. */
void wait_end(void *self);

#endif
