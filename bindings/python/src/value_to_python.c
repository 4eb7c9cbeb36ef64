/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"
#include "value.h"
#include "worker.h"

static PyObject *value_to_list(const struct tenrec_value *v, PyObject *worker)
{
    PyObject *list = PyList_New((Py_ssize_t)v->n);

    for (uint64_t i = 0; list && i < v->n; i++) {
        PyObject *item = value_to_python(&v->u.array[i], worker);

        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The object of a registered class that a dict of n entries stands for, or the dict.
 *
 * dict     taken; NULL passes a failure on
 */
static PyObject *value_decoded(PyObject *dict, uint64_t n)
{
    PyObject *decode = dict && n == 2 ? value_decoder() : NULL, *made;

    if (!decode)
        return dict;
    Py_INCREF(decode);
    made = PyObject_CallFunctionObjArgs(decode, dict, NULL);
    Py_DECREF(decode);
    Py_DECREF(dict);
    return made;
}

static PyObject *value_to_dict(const struct tenrec_value *v, PyObject *worker)
{
    PyObject *dict = PyDict_New();

    for (uint64_t i = 0; dict && i < v->n; i++) {
        PyObject *item = value_to_python(&v->u.map[i].value, worker);

        if (!item || PyDict_SetItemString(dict, v->u.map[i].key, item) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    return value_decoded(dict, v->n);
}

/* What Worker's as_tensor makes of a received tensor. */
static PyObject *value_to_tensor(const struct tenrec_value *v, PyObject *worker)
{
    PyObject *tensor = tensor_wrap(tenrec_tensor_share(v->u.tensor)), *made;
    PyObject *as_tensor = ((const struct worker *)worker)->as_tensor;

    if (!tensor || !as_tensor)
        return tensor;
    made = PyObject_CallFunctionObjArgs(as_tensor, tensor, NULL);
    Py_DECREF(tensor);
    return made;
}

PyObject *value_to_python(const struct tenrec_value *v, PyObject *worker)
{
    switch (v->type) {
    case TENREC_VALUE_NIL:
        Py_RETURN_NONE;
    case TENREC_VALUE_BOOL:
        return PyBool_FromLong(v->u.boolean);
    case TENREC_VALUE_INT:
        return PyLong_FromLongLong(v->u.integer);
    case TENREC_VALUE_DOUBLE:
        return PyFloat_FromDouble(v->u.number);
    case TENREC_VALUE_TEXT:
        return PyUnicode_FromStringAndSize(v->u.text, (Py_ssize_t)v->n);
    case TENREC_VALUE_BYTES:
        return PyBytes_FromStringAndSize(v->u.bytes, (Py_ssize_t)v->n);
    case TENREC_VALUE_ARRAY:
        return value_to_list(v, worker);
    case TENREC_VALUE_MAP:
        return value_to_dict(v, worker);
    case TENREC_VALUE_TENSOR:
        return value_to_tensor(v, worker);
    case TENREC_VALUE_RREF:
        return rref_wrap(tenrec_rref_share(v->u.rref), worker);
    case TENREC_VALUE_REGION:
        return region_ref_wrap(v->u.region);
    case TENREC_VALUE_OBJECT:
        return object_unwrap(v->u.object);
    default:
        return PyErr_Format(PyExc_TypeError, "%s cannot be used in Python",
                            tenrec_value_type_name(v->type));
    }
}
