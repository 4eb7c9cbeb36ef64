/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - to Tenrec. The other direction is value_to_python.c. */
#include "value.h"

#include "region.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST 64 /* as tenrec_value_copy */

static bool value_read(struct values *v, PyObject *o, struct tenrec_value *ret, int depth);

/* Keeps `o` as long as the values live.
 *
 * o        taken; NULL passes a failure on
 */
static bool value_keep(struct values *v, PyObject *o)
{
    bool kept;

    if (o && !v->kept)
        v->kept = PyList_New(0);
    kept = o && v->kept && PyList_Append(v->kept, o) == 0;
    Py_XDECREF(o);
    return kept;
}

static void value_free_memory(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

/* Memory that lives as long as the values. */
static void *value_memory(struct values *v, Py_ssize_t n, size_t size)
{
    void *memory = calloc(n ? (size_t)n : 1, size);
    PyObject *capsule = memory ? PyCapsule_New(memory, NULL, value_free_memory) : NULL;

    if (!memory)
        PyErr_NoMemory();
    else if (!capsule)
        free(memory);
    return value_keep(v, capsule) ? memory : NULL;
}

/* ---- texts and bytes --------------------------------------------------------------- */

static bool value_read_text(struct values *v, PyObject *o, struct tenrec_value *ret)
{
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(o, &n);

    if (!text)
        return false;
    *ret = tenrec_value_of(TENREC_VALUE_TEXT, (uint64_t)n);
    ret->u.text = text;
    v->bulky |= (size_t)n >= VALUES_BULK;
    return true;
}

/* A bytearray is copied: it may change, and a tensor would be another type at the other end. */
static bool value_read_bytes(struct values *v, PyObject *o, struct tenrec_value *ret)
{
    PyObject *bytes = PyBytes_Check(o) ? o : PyBytes_FromObject(o);
    Py_ssize_t n;
    char *first;

    if ((bytes != o && !value_keep(v, bytes)) || PyBytes_AsStringAndSize(bytes, &first, &n) < 0)
        return false;
    *ret = tenrec_value_bytes(first, (size_t)n);
    v->bulky |= (size_t)n >= VALUES_BULK;
    return true;
}

static bool value_read_region(struct values *v, PyObject *o, struct tenrec_value *ret)
{
    struct tenrec_region_ref *ref = value_memory(v, 1, sizeof *ref); /* aligned */
    Py_ssize_t n;
    char *bytes;

    if (!ref || PyBytes_AsStringAndSize(o, &bytes, &n) < 0 || !region_ref_read(bytes, n, ref))
        return false;
    *ret = tenrec_value_region(ref);
    return true;
}

/* ---- lists and dicts --------------------------------------------------------------- */

static bool value_read_items(struct values *v, PyObject *from, const struct tenrec_value **ret,
                             Py_ssize_t *ret_n, int depth)
{
    /* A tuple of its own: code of Python that a conversion runs may change a list. */
    PyObject *items = PyTuple_Check(from) ? from : PySequence_Tuple(from);
    struct tenrec_value *made;

    if (items != from && !value_keep(v, items))
        return false;
    *ret_n = PyTuple_Size(items);
    made = depth == 0 && *ret_n <= VALUES_FEW ? v->few : value_memory(v, *ret_n, sizeof *made);
    if (!made)
        return false;
    for (Py_ssize_t i = 0; i < *ret_n; i++)
        if (!value_read(v, PyTuple_GetItem(items, i), &made[i], depth))
            return false;
    *ret = made;
    return true;
}

static bool value_read_list(struct values *v, PyObject *o, struct tenrec_value *ret, int depth)
{
    const struct tenrec_value *items;
    Py_ssize_t n;

    if (!value_read_items(v, o, &items, &n, depth + 1))
        return false;
    *ret = tenrec_value_array(items, (size_t)n);
    return true;
}

/* The key of a map, borrowed from `o`; NULL with an exception. */
static const char *value_read_key(PyObject *o)
{
    Py_ssize_t n;
    const char *key;

    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "a key of a dict is %R, expected a str", o);
        return NULL;
    }
    key = PyUnicode_AsUTF8AndSize(o, &n);
    if (key && strlen(key) != (size_t)n) {
        PyErr_Format(PyExc_ValueError, "the key %R of a dict has a zero character", o);
        return NULL;
    }
    return key;
}

static bool value_read_dict(struct values *v, PyObject *o, struct tenrec_value *ret, int depth)
{
    PyObject *pairs = PyDict_Items(o);
    const Py_ssize_t n = pairs ? PyList_Size(pairs) : 0;
    struct tenrec_entry *made = pairs ? value_memory(v, n, sizeof *made) : NULL;

    if (!value_keep(v, pairs) || !made)
        return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyList_GetItem(pairs, i);

        made[i].key = value_read_key(PyTuple_GetItem(pair, 0));
        if (!made[i].key || !value_read(v, PyTuple_GetItem(pair, 1), &made[i].value, depth + 1))
            return false;
    }
    *ret = tenrec_value_map(made, (size_t)n);
    return true;
}

/* ---- tensors and other objects ------------------------------------------------------- */

/* A scalar of numpy, which has a buffer of no dimensions, is the number that it stands for. */
static bool value_is_scalar(PyObject *o)
{
    return PyObject_CheckBuffer(o) && !PyObject_HasAttrString(o, "__dlpack__") &&
           PyObject_HasAttrString(o, "item");
}

static bool value_read_scalar(struct values *v, PyObject *o, struct tenrec_value *ret, int depth)
{
    PyObject *item = PyObject_CallMethod(o, "item", NULL);

    return value_keep(v, item) && value_read(v, item, ret, depth + 1);
}

static bool value_read_tensor(struct values *v, PyObject *o, struct tenrec_value *ret)
{
    PyObject *tensor = tensor_of(o) ? Py_NewRef(o) : memory_import(o);

    if (!value_keep(v, tensor))
        return false;
    *ret = tenrec_value_tensor(tensor_of(tensor));
    v->bulky = true;
    return true;
}

static void value_drop_object(PyObject *capsule)
{
    tenrec_object_drop(PyCapsule_GetPointer(capsule, NULL));
}

static bool value_read_object(struct values *v, PyObject *o, struct tenrec_value *ret)
{
    struct tenrec_object *object;
    PyObject *capsule;

    if (!v->objects) {
        PyErr_Format(PyExc_TypeError,
                     "%R cannot be sent, expected None, bool, int, float, str, bytes, list, tuple, "
                     "dict, RRef, or a tensor (a buffer, or DLPack)",
                     o);
        return false;
    }
    object = object_wrap(o);
    if (!object)
        return false;
    capsule = PyCapsule_New(object, NULL, value_drop_object);
    if (!capsule)
        tenrec_object_drop(object);
    *ret = tenrec_value_object(object);
    return value_keep(v, capsule);
}

/* ---- registered classes ----------------------------------------------------------------- */

static PyObject *value_encoders; /* a dict: class: function that makes a plain value */
static PyObject *value_decode;

void value_use(PyObject *encoders, PyObject *decode)
{
    python_hold(&value_encoders, encoders);
    python_hold(&value_decode, decode);
}

PyObject *value_decoder(void)
{
    return value_encoders && PyDict_Size(value_encoders) > 0 ? value_decode : NULL;
}

/* The function for objects of the class of `o`, borrowed; NULL, maybe with an exception: none. */
static PyObject *value_encoder(PyObject *o)
{
    return value_decoder() ? PyDict_GetItemWithError(value_encoders, (PyObject *)Py_TYPE(o)) : NULL;
}

static bool value_read_encoded(struct values *v, PyObject *o, PyObject *encode,
                               struct tenrec_value *ret, int depth)
{
    PyObject *plain;

    Py_INCREF(encode);
    plain = PyObject_CallFunctionObjArgs(encode, o, NULL);
    Py_DECREF(encode);
    return value_keep(v, plain) && value_read(v, plain, ret, depth + 1);
}

/* ---- all ------------------------------------------------------------------------------- */

static bool value_read_number(PyObject *o, struct tenrec_value *ret)
{
    if (PyFloat_Check(o))
        *ret = tenrec_value_double(PyFloat_AsDouble(o));
    else
        *ret = tenrec_value_int(PyLong_AsLongLong(o));
    return !PyErr_Occurred(); /* OverflowError */
}

static bool value_read(struct values *v, PyObject *o, struct tenrec_value *ret, int depth)
{
    PyObject *encode;

    if (depth > DEEPEST) {
        PyErr_Format(PyExc_ValueError, "the value is nested deeper than %d", DEEPEST);
        return false;
    }
    if (o == Py_None) {
        *ret = tenrec_value_nil();
        return true;
    }
    encode = value_encoder(o); /* first: a member of an enumeration may be an int, too */
    if (encode || PyErr_Occurred())
        return encode && value_read_encoded(v, o, encode, ret, depth);
    if (PyBool_Check(o)) {
        *ret = tenrec_value_bool(o == Py_True);
        return true;
    }
    if (PyLong_Check(o) || PyFloat_Check(o))
        return value_read_number(o, ret);
    if (PyUnicode_Check(o))
        return value_read_text(v, o, ret);
    if (region_ref_is(o)) /* bytes, too */
        return value_read_region(v, o, ret);
    if (PyBytes_Check(o) || PyByteArray_Check(o))
        return value_read_bytes(v, o, ret);
    if (PyList_Check(o) || PyTuple_Check(o))
        return value_read_list(v, o, ret, depth);
    if (PyDict_Check(o))
        return value_read_dict(v, o, ret, depth);
    if (rref_of(o)) {
        *ret = tenrec_value_rref(rref_of(o));
        return true;
    }
    if (value_is_scalar(o))
        return value_read_scalar(v, o, ret, depth);
    if (tensor_of(o) || memory_possible(o))
        return value_read_tensor(v, o, ret);
    return value_read_object(v, o, ret);
}

static void values_begin(struct values *v, PyObject *from, bool objects)
{
    v->item = v->few;
    v->n = 1;
    v->from = Py_NewRef(from);
    v->kept = NULL;
    v->objects = objects;
    v->bulky = false;
}

bool values_read(struct values *v, PyObject *tuple)
{
    Py_ssize_t n = 0;

    values_begin(v, tuple, false);
    if (!value_read_items(v, tuple, &v->item, &n, 0))
        return false;
    v->n = (size_t)n;
    return true;
}

bool values_read_one(struct values *v, PyObject *o, bool objects)
{
    values_begin(v, o, objects);
    return value_read(v, o, v->few, 0);
}

void values_finish(struct values *v)
{
    Py_CLEAR(v->kept);
    Py_CLEAR(v->from);
}
