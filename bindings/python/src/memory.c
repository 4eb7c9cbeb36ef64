/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include <dlpack/dlpack.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/device.h>

/* ---- the buffer protocol ---------------------------------------------------------- */

struct memory_buffer {
    struct garbage garbage; /* first */
    Py_buffer view;
};

static void memory_release_buffer(struct garbage *g)
{
    struct memory_buffer *b = (struct memory_buffer *)g;

    PyBuffer_Release(&b->view);
    free(b);
}

/* On any thread, when the last holder drops the tensor. */
static void memory_unused(void *arg, void *data)
{
    (void)data;
    garbage_put(arg);
}

static bool memory_describe(const Py_buffer *view, struct tenrec_tensor_desc *d)
{
    if (view->ndim > TENREC_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "the buffer has %d dimensions, at most %d can be sent",
                     view->ndim, TENREC_MAX_DIMS);
        return false;
    }
    if (!element_of_format(view->format, view->itemsize, &d->dtype))
        return false;
    d->data = view->buf;
    d->ndim = (uint32_t)view->ndim;
    d->device = d->target = (struct tenrec_device){ TENREC_CPU, 0 };
    d->flags = view->readonly ? TENREC_TENSOR_READ_ONLY : 0;
    d->bytes = (uint64_t)view->itemsize;
    for (int i = 0; i < view->ndim; i++) {
        const Py_ssize_t length = view->shape[i];

        /* A stride that no element uses can have any value. */
        d->shape[i] = length;
        d->strides[i] = length > 1 ? view->strides[i] / view->itemsize : 0;
        if (length > 1 && (view->strides[i] < 0 || view->strides[i] % view->itemsize)) {
            PyErr_Format(PyExc_ValueError,
                         "dimension %d has a stride of %zd bytes, expected a multiple of %zd that "
                         "is not negative: copy it first, such as by numpy.ascontiguousarray",
                         i, view->strides[i], view->itemsize);
            return false;
        }
        d->bytes += length > 1 ? (uint64_t)(length - 1) * (uint64_t)view->strides[i] : 0;
    }
    if (view->len == 0)
        d->bytes = 0;
    return true;
}

static PyObject *memory_from_buffer(PyObject *o)
{
    struct memory_buffer *b = calloc(1, sizeof *b);
    struct tenrec_tensor_desc d = { 0 };
    struct tenrec_tensor *t;
    tenrec_error err;

    if (!b)
        return PyErr_NoMemory();
    if (PyObject_GetBuffer(o, &b->view, PyBUF_RECORDS_RO) < 0) {
        free(b);
        return NULL;
    }
    b->garbage.release = memory_release_buffer;
    if (!memory_describe(&b->view, &d)) {
        memory_release_buffer(&b->garbage);
        return NULL;
    }
    if (tenrec_tensor_from_desc(&d, memory_unused, b, &t, &err)) {
        memory_release_buffer(&b->garbage);
        return error_raise(&err);
    }
    return tensor_wrap(t);
}

/* ---- DLPack ------------------------------------------------------------------------ */

/* The producer's tensor with another deleter: the producer's own may wait for the GIL. */
struct memory_dlpack {
    struct garbage garbage; /* first */
    DLManagedTensor dl;
    DLManagedTensor *theirs;
};

static void memory_release_dlpack(struct garbage *g)
{
    struct memory_dlpack *m = (struct memory_dlpack *)g;

    if (m->theirs->deleter)
        m->theirs->deleter(m->theirs);
    free(m);
}

static void memory_unused_dlpack(DLManagedTensor *dl)
{
    garbage_put(dl->manager_ctx);
}

static PyObject *memory_from_capsule(PyObject *capsule)
{
    DLManagedTensor *theirs = PyCapsule_GetPointer(capsule, "dltensor");
    struct memory_dlpack *m = theirs ? calloc(1, sizeof *m) : NULL;
    struct tenrec_tensor *t;
    tenrec_error err;

    if (!theirs)
        return NULL;
    if (!m)
        return PyErr_NoMemory();
    m->garbage.release = memory_release_dlpack;
    m->theirs = theirs;
    m->dl.dl_tensor = theirs->dl_tensor;
    m->dl.manager_ctx = m;
    m->dl.deleter = memory_unused_dlpack;
    if (theirs->dl_tensor.device.device_type != kDLCPU) {
        free(m);
        PyErr_Format(PyExc_BufferError,
                     "the tensor is on a device (DLPack's type %d): copy it to the host first",
                     (int)theirs->dl_tensor.device.device_type);
        return NULL;
    }
    if (tenrec_tensor_from_dlpack(&m->dl, &t, &err)) {
        free(m);
        return error_raise(&err);
    }
    PyCapsule_SetName(capsule, "used_dltensor");
    return tensor_wrap(t);
}

/* The elements of a tensor of torch, which exports none that has a gradient, or is conjugated or
 * negated only when it is read. Another object is returned itself. */
static PyObject *memory_plain(PyObject *o)
{
    static const char *const steps[] = { "detach", "resolve_conj", "resolve_neg" };
    PyObject *plain = Py_NewRef(o);

    for (size_t i = 0; plain && i < sizeof steps / sizeof *steps; i++) {
        PyObject *next;

        if (!PyObject_HasAttrString(plain, steps[i]))
            break;
        next = PyObject_CallMethod(plain, steps[i], NULL);
        Py_DECREF(plain);
        plain = next;
    }
    return plain;
}

static PyObject *memory_from_dlpack(PyObject *o)
{
    PyObject *plain = memory_plain(o);
    PyObject *capsule = plain ? PyObject_CallMethod(plain, "__dlpack__", NULL) : NULL, *made;

    made = capsule ? memory_from_capsule(capsule) : NULL;
    Py_XDECREF(capsule);
    Py_XDECREF(plain);
    return made;
}

/* ---- both -------------------------------------------------------------------------- */

/* An array of numpy.ma: its buffer is the data alone, without the mask. */
static bool memory_is_masked(PyObject *o)
{
    return PyObject_HasAttrString(o, "mask") && PyObject_HasAttrString(o, "filled");
}

bool memory_possible(PyObject *o)
{
    return PyObject_CheckBuffer(o) || PyObject_HasAttrString(o, "__dlpack__");
}

PyObject *memory_tensor(PyObject *o)
{
    if (tensor_of(o))
        return Py_NewRef(o);
    if (memory_possible(o))
        return memory_import(o);
    PyErr_Format(PyExc_TypeError, "%R has no memory, expected a tensor (a buffer, or DLPack)", o);
    return NULL;
}

PyObject *memory_import(PyObject *o)
{
    if (memory_is_masked(o)) {
        PyErr_SetString(PyExc_TypeError, "a masked array cannot be sent: send array.filled(value), "
                                         "or its data and its mask");
        return NULL;
    }
    return PyObject_CheckBuffer(o) ? memory_from_buffer(o) : memory_from_dlpack(o);
}

bool memory_read_shape(PyObject *from, int64_t *shape, uint32_t *ret_n)
{
    const Py_ssize_t n = PyTuple_Size(from);

    if (n > TENREC_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions, at most %d are possible", n,
                     TENREC_MAX_DIMS);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        shape[i] = PyLong_AsLongLong(PyTuple_GetItem(from, i));
        if (shape[i] == -1 && PyErr_Occurred())
            return false;
    }
    *ret_n = (uint32_t)n;
    return true;
}

/* Fills a new tensor, which is contiguous. */
static bool memory_fill(struct tenrec_tensor *t, PyObject *bytes)
{
    Py_ssize_t n;
    char *first;

    if (PyBytes_AsStringAndSize(bytes, &first, &n) < 0)
        return false;
    if ((size_t)n != tenrec_tensor_bytes(t)) {
        PyErr_Format(PyExc_ValueError, "%zd bytes for a tensor of %zu", n, tenrec_tensor_bytes(t));
        return false;
    }
    if (n)
        memcpy(tenrec_tensor_data(t), first, (size_t)n);
    return true;
}

PyObject *memory_new(PyObject *module, PyObject *args)
{
    struct tenrec_tensor_options o = { .size = sizeof o };
    int64_t shape[TENREC_MAX_DIMS];
    struct tenrec_dtype dtype;
    struct tenrec_tensor *t;
    PyObject *lengths, *bytes = NULL;
    const char *name;
    tenrec_status st;
    tenrec_error err;
    uint32_t n;
    int shared;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!sp|O!", &PyTuple_Type, &lengths, &name, &shared, &PyBytes_Type,
                          &bytes) ||
        !memory_read_shape(lengths, shape, &n) || !element_of_name(name, &dtype))
        return NULL;
    o.flags = shared ? TENREC_SHARED : 0;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_tensor_new_with(dtype, n, shape, &o, &t, &err);
    Py_END_ALLOW_THREADS
    if (st)
        return error_raise(&err);
    if (bytes && !memory_fill(t, bytes)) {
        tenrec_tensor_drop(t);
        return NULL;
    }
    return tensor_wrap(t);
}
