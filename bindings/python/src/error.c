/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#include <stdbool.h>

static PyObject *error_make, *error_describe;

void error_use(PyObject *make, PyObject *describe)
{
    python_hold(&error_make, make);
    python_hold(&error_describe, describe);
}

PyObject *error_raise(const tenrec_error *err)
{
    PyObject *made;

    if (!error_make)
        return PyErr_Format(PyExc_RuntimeError, "%s (the interpreter ends)",
                            tenrec_status_name(err->code));
    made = PyObject_CallFunction(error_make, "sNNOi", tenrec_status_name(err->code),
                                 python_text(err->text), python_text(err->worker_name),
                                 (err->flags & TENREC_ERROR_CALLEE) ? Py_True : Py_False,
                                 (int)err->os_errno);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    return NULL;
}

/* The status of this name; EREMOTE for an unknown name, and for that of success. */
static tenrec_status error_status(const char *name)
{
#define X(status, value, reaches, text)                                                            \
    if (value != TENREC_OK && strcmp(name, #status) == 0)                                          \
        return TENREC_##status;
    TENREC_STATUS_MAP(X)
#undef X
    return TENREC_EREMOTE;
}

/* Without an exception: a failure that has no describable one, such as of memory. */
static tenrec_status error_unknown(tenrec_error *err)
{
    PyErr_Clear();
    return tenrec_fail(err, TENREC_EREMOTE, "the function raised an exception without a text");
}

bool error_read(PyObject *described, tenrec_error *err)
{
    const char *name, *text;

    if (!PyArg_ParseTuple(described, "ss", &name, &text))
        return false;
    tenrec_fail(err, error_status(name), "%s", text);
    return true;
}

tenrec_status error_catch(tenrec_error *err)
{
    PyObject *type, *value, *traceback, *described = NULL;
    tenrec_status status;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    if (value && error_describe)
        described = PyObject_CallFunctionObjArgs(error_describe, value, NULL);
    if (described && error_read(described, err))
        status = err->code;
    else
        status = error_unknown(err);
    Py_XDECREF(described);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return status;
}
