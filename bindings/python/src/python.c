/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

PyObject *python_new(PyObject *type)
{
    return PyType_GenericAlloc((PyTypeObject *)type, 0);
}

void python_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

PyObject *python_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}
