/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory of Python objects as tensors, without a copy. */
#ifndef PYTHON_MEMORY_H
#define PYTHON_MEMORY_H

#include "python.h"

#include <stdbool.h>

/* Returns true if `o` has memory that can be sent as a tensor: a buffer, or DLPack. */
bool memory_possible(PyObject *o);

/* Makes a tenrec.Tensor that shares the memory of such an object; NULL with an exception. */
PyObject *memory_import(PyObject *o);

/* memory_new(shape, dtype, shared): a new tenrec.Tensor, contents undefined. */
PyObject *memory_new(PyObject *module, PyObject *args);

#endif
