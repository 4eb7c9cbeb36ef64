/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - tenrec_rpc._core, on which the files of the package tenrec_rpc build. */
#include "python.h"

#include "future.h"
#include "link.h"
#include "region.h"
#include "value.h"
#include "weights.h"
#include "worker.h"

#include <dlfcn.h>
#include <stdint.h>
#include <tenrec/rpc.h>

PyMODINIT_FUNC PyInit__core(void);

/* use(make_error, describe_error, and the classes Future, Transfer, RRef, Region, RegionRef,
 * Weights, Link) */
static PyObject *module_use(PyObject *module, PyObject *args)
{
    PyObject *make, *describe, *future, *transfer, *rref, *region, *ref, *weights, *link;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O!O!O!O!O!O!", &make, &describe, &PyType_Type, &future,
                          &PyType_Type, &transfer, &PyType_Type, &rref, &PyType_Type, &region,
                          &PyType_Type, &ref, &PyType_Type, &weights, &PyType_Type, &link))
        return NULL;
    error_use(make, describe);
    future_use(future, transfer);
    rref_use(rref);
    region_use(region, ref);
    weights_use(weights);
    link_use(link);
    Py_RETURN_NONE;
}

/* use_codecs(encoders, decode) */
static PyObject *module_use_codecs(PyObject *module, PyObject *args)
{
    PyObject *encoders, *decode;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &encoders, &decode))
        return NULL;
    value_use(encoders, decode);
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
    { "use_codecs", module_use_codecs, METH_VARARGS, NULL },
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

static int module_exec(PyObject *module)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "tenrec_rpc works in the main interpreter only, where its threads run");
        return -1;
    }
    python_own(module);
    forked_watch();
    return tensor_add_type(module) && future_add_type(module) && rref_add_type(module) &&
                   region_add_type(module) && weights_add_type(module) && link_add_type(module) &&
                   answer_add_type(module) && worker_add_type(module) &&
                   PyModule_AddStringConstant(module, "version", tenrec_version_text()) == 0 &&
                   module_add_library(module)
               ? 0
               : -1;
}

static void module_free(void *module)
{
    python_clear(module);
}

PyMODINIT_FUNC PyInit__core(void)
{
    static PyModuleDef_Slot slots[] = {
        { Py_mod_exec, module_exec },
        { 0, NULL },
    };
    static PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, .m_name = "tenrec_rpc._core",  .m_methods = module_functions,
        .m_slots = slots,      .m_traverse = python_traverse, .m_clear = python_clear,
        .m_free = module_free,
    };

    return PyModuleDef_Init(&definition);
}
