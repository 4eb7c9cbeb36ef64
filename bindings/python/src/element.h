/* SPDX-License-Identifier: Apache-2.0 */
/* element.h - types of elements, as Tenrec, the buffer protocol and people name them. */
#ifndef PYTHON_ELEMENT_H
#define PYTHON_ELEMENT_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/tensor.h>

/* The type of a buffer's elements; false with an exception when Tenrec has none.
 *
 * format   as of the module struct; NULL: unsigned bytes
 * bytes    of an element
 */
bool element_of_format(const char *format, Py_ssize_t bytes, struct tenrec_dtype *ret);

/* The format of a type; NULL where the buffer protocol has none (bfloat16). */
const char *element_format(struct tenrec_dtype dtype);

/* The type of this name ("float32"); false with an exception for an unknown one. */
bool element_of_name(const char *name, struct tenrec_dtype *ret);

#endif
