/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - Python.h, limited to the stable interface of 3.11 (set by meson.build). */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#include <stdbool.h>
#include <tenrec/error.h>

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef Py_LIMITED_API
#error "compile with -DPy_LIMITED_API=0x030B0000"
#endif

/* Lets a static variable share `o`; NULL is allowed. The module traverses and clears all these
 * variables, so that the interpreter can free what they reach: they are NULL once it ends. */
void python_hold(PyObject **variable, PyObject *o);
/* The module of these variables, the last that was imported; borrowed. */
void python_own(PyObject *module);
int python_traverse(PyObject *module, visitproc visit, void *arg);
int python_clear(PyObject *module);

/* A text of the library or of another process, of any bytes, as a str. */
PyObject *python_text(const char *text);

/* Makes an object of `type`, zeroed; NULL with an exception. */
PyObject *python_new(PyObject *type);

/* Frees the memory of an object, and its share of its type: the end of a tp_dealloc. */
void python_free(PyObject *self);

/* Makes a type from its spec and adds it to the module; NULL with an exception. */
PyObject *python_add_type(PyObject *module, PyType_Spec *spec);

/* error.c: errors of Tenrec as exceptions, and exceptions as errors. */

/* The functions of tenrec/errors.py that make an exception, and describe one; shared. */
void error_use(PyObject *make, PyObject *describe);

/* Raises the exception of `err`. Returns NULL, so that a function can end with it. */
PyObject *error_raise(const tenrec_error *err);

/* Reads what the function that describes an exception has returned; false with an exception. */
bool error_read(PyObject *described, tenrec_error *err);

/* Clears the exception that a function raised, and returns it as the error for its caller. */
tenrec_status error_catch(tenrec_error *err);

/* gil.c: PyGILState_Ensure for a thread that comes again: its thread state, which takes memory of
 * its own and a lock of all, stays until the thread ends. Undone by PyGILState_Release. */
PyGILState_STATE gil_take(void);

/* garbage.c: Python objects that a thread of Tenrec has used last.
 *
 * Tenrec frees tensors and objects on any of its threads, also on those that serve connections.
 * None of them may wait for the GIL, so they only queue what is to be released. */

/* Embedded in the object that is to be released. */
struct garbage {
    struct garbage *next;
    void (*release)(struct garbage *g); /* called once, with the GIL */
};

/* Queues `g`; from any thread, with or without the GIL. */
void garbage_put(struct garbage *g);

/* Releases the queue; with the GIL. */
void garbage_drain(void);

/* Called at the exit of the interpreter: from then on nothing is released. */
void garbage_stop(void);

/* forked.c: the child of a fork that was made in a function or callback of the program. */

/* From now on forks are counted. */
void forked_watch(void);

/* The number of forks between this process and the first that imported the package. */
unsigned forked_count(void);

/* After a call into Python, with the GIL; `before`: forked_count before the call. Returns false in
 * the process that made the call. In a child it returns true, and the caller returns to Tenrec,
 * which ends the thread; but if the call has raised an exception, it ends the child, with the
 * status of a SystemExit, or with 1 and a traceback. */
bool forked_since(unsigned before);

#endif
