/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - Python objects as values of Tenrec, and back. */
#ifndef PYTHON_VALUE_H
#define PYTHON_VALUE_H

#include "python.h"

#include <stdbool.h>
#include <tenrec/rref.h>
#include <tenrec/tensor.h>
#include <tenrec/value.h>

#define VALUES_FEW 4 /* values that need no memory of their own */
#define VALUES_BULK                                                                                \
    16384u /* bytes; fewer are copied sooner than the GIL is given up and had back */

/* Values that borrow the memory of the Python objects that `from` and `kept` hold. */
struct values {
    const struct tenrec_value *item;
    size_t n;
    PyObject *from; /* what they were read from */
    PyObject *kept; /* list of what was made of it; NULL: nothing */
    bool objects;   /* any other object is a value, too, which does not travel */
    bool bulky;     /* a tensor is among them, or a text or bytes of VALUES_BULK */
    struct tenrec_value few[VALUES_FEW];
};

/* Reads the items of a tuple, or one object, to which `v` then points: it stays where it is. Finish
 * them also after a failure, which returns false with an exception.
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

/* Sets what is done with objects of registered classes: a dict of functions that make plain values,
 * by class, and a function that makes objects of dicts (codecs.py). */
void value_use(PyObject *encoders, PyObject *decode);

/* The latter, borrowed; NULL, without an exception, while no class is registered. */
PyObject *value_decoder(void);

/* element.c: types of elements, as Tenrec, the buffer protocol and people name them. */

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

/* memory.c: memory of Python objects as tensors, without a copy. */

/* Returns true if `o` has memory that can be sent as a tensor: a buffer, or DLPack. */
bool memory_possible(PyObject *o);

/* Makes a tenrec.Tensor that shares the memory of such an object; NULL with an exception. */
PyObject *memory_import(PyObject *o);

/* The same for any object: a tenrec.Tensor is itself, and one without memory a TypeError. */
PyObject *memory_tensor(PyObject *o);

/* Reads a tuple of lengths, at most TENREC_MAX_DIMS; false with an exception. */
bool memory_read_shape(PyObject *from, int64_t *shape, uint32_t *ret_n);

/* memory_new(shape, dtype, shared): a new tenrec.Tensor, contents undefined. */
PyObject *memory_new(PyObject *module, PyObject *args);

/* object.c: Python objects as objects of Tenrec, which stay with the worker that has them. */

/* Wraps `o`, which it shares; NULL with an exception. tenrec_object_drop it. */
struct tenrec_object *object_wrap(PyObject *o);

/* The Python object of an object, a new reference; NULL with an exception if it is another
 * language's. */
PyObject *object_unwrap(const struct tenrec_object *o);

/* rref.c: the base of tenrec.RRef. */

bool rref_add_type(PyObject *module);

/* The class of the references that are made from now on, which extends the base. */
void rref_use(PyObject *type);

/* Makes a tenrec.RRef; NULL with an exception.
 *
 * r        taken always
 */
PyObject *rref_wrap(struct tenrec_rref *r, PyObject *worker);

/* The reference of a tenrec.RRef, borrowed from it; NULL, without an exception, for another
 * object. */
struct tenrec_rref *rref_of(PyObject *o);

/* tensor.c: tenrec.Tensor: a tensor of Tenrec for Python, and memory of Python as a tensor. */

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
