/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - Python objects as values of Tenrec, and back. */
#ifndef PYTHON_VALUE_H
#define PYTHON_VALUE_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/value.h>

/* Values that borrow the memory of the Python objects that `kept` holds. */
struct values {
    const struct tenrec_value *item;
    size_t n;
    PyObject *kept; /* list */
    bool objects;   /* any other object is a value, too, which does not travel */
};

/* Reads the items of a tuple, or one object. Finish them also after a failure, which returns
 * false with an exception.
 *
 * objects  objects that cannot be sent become values that stay here
 */
bool values_read(struct values *v, PyObject *tuple);
bool values_read_one(struct values *v, PyObject *o, bool objects);
void values_finish(struct values *v); /* with the GIL */

/* Makes a Python object; tensors share the memory of `v`. NULL with an exception.
 *
 * worker   the tenrec.Worker that received it
 */
PyObject *value_to_python(const struct tenrec_value *v, PyObject *worker);

#endif
