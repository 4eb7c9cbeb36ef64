/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - tenrec_rpc._core, on which the files of the package tenrec_rpc build. */
#include "python.h"

#include "error.h"
#include "future.h"
#include "garbage.h"
#include "memory.h"
#include "rref.h"
#include "tensor.h"
#include "worker.h"

#include <dlfcn.h>
#include <stdint.h>
#include <tenrec/rpc.h>

PyMODINIT_FUNC PyInit__core(void);

/* use(make_error, describe_error, future_type, rref_type) */
static PyObject *module_use(PyObject *module, PyObject *args)
{
    PyObject *make, *describe, *future, *rref;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O!", &make, &describe, &PyType_Type, &future, &PyType_Type,
                          &rref))
        return NULL;
    error_use(make, describe);
    future_use(future);
    rref_use(rref);
    Py_RETURN_NONE;
}

static PyObject *module_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    garbage_stop();
    Py_RETURN_NONE;
}

static PyMethodDef module_functions[] = {
    { "use", module_use, METH_VARARGS, NULL },
    { "stop", module_stop, METH_NOARGS, NULL },
    { "new_tensor", memory_new, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

/* The path of libtenrec, for extensions that link it. */
static bool module_add_library(PyObject *module)
{
    Dl_info found;

    if (!dladdr((const void *)(uintptr_t)tenrec_version_text, &found))
        found.dli_fname = ""; /* linked into the program */
    return PyModule_AddStringConstant(module, "library", found.dli_fname) == 0;
}

PyMODINIT_FUNC PyInit__core(void)
{
    static PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "tenrec_rpc._core",
        .m_size = -1, /* threads of Tenrec run in the main interpreter only */
        .m_methods = module_functions,
    };
    PyObject *module = PyModule_Create(&definition);

    if (module && (!tensor_add_type(module) || !future_add_type(module) || !rref_add_type(module) ||
                   !worker_add_type(module) ||
                   PyModule_AddStringConstant(module, "version", tenrec_version_text()) < 0 ||
                   !module_add_library(module)))
        Py_CLEAR(module);
    return module;
}
