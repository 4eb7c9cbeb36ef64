/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - Python objects as objects of Tenrec, which stay with the worker that has them. */
#ifndef PYTHON_OBJECT_H
#define PYTHON_OBJECT_H

#include "python.h"

#include <tenrec/rref.h>

/* Wraps `o`, which it shares; NULL with an exception. tenrec_object_drop it. */
struct tenrec_object *object_wrap(PyObject *o);

/* The Python object of an object, a new reference; NULL with an exception if it is another
 * language's. */
PyObject *object_unwrap(const struct tenrec_object *o);

#endif
