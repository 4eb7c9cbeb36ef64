/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - tenrec.Tensor: a tensor of Tenrec for Python, and memory of Python as a tensor. */
#ifndef PYTHON_TENSOR_H
#define PYTHON_TENSOR_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/tensor.h>

bool tensor_add_type(PyObject *module);

/* Makes a tenrec.Tensor; NULL with an exception.
 *
 * t        taken always
 */
PyObject *tensor_wrap(struct tenrec_tensor *t);

/* The tensor of a tenrec.Tensor, borrowed from it; NULL, without an exception, for another
 * object. */
struct tenrec_tensor *tensor_of(PyObject *o);

#endif
