/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include <dlpack/dlpack.h>
#include <stdlib.h>

struct tensor {
    PyObject_HEAD
    struct tenrec_tensor *t; /* shared; NULL only after a constructor that was gone around */
};

static PyObject *tensor_type;

PyObject *tensor_wrap(struct tenrec_tensor *t)
{
    PyObject *self = python_new(tensor_type);

    if (self)
        ((struct tensor *)self)->t = t;
    else
        tenrec_tensor_drop(t);
    return self;
}

struct tenrec_tensor *tensor_of(PyObject *o)
{
    return Py_IS_TYPE(o, (PyTypeObject *)tensor_type) ? ((struct tensor *)o)->t : NULL;
}

static void tensor_dealloc(PyObject *self)
{
    struct tenrec_tensor *t = ((struct tensor *)self)->t;

    Py_BEGIN_ALLOW_THREADS
    tenrec_tensor_drop(t);
    Py_END_ALLOW_THREADS
    python_free(self);
    garbage_drain();
}

static struct tenrec_tensor *tensor_checked(PyObject *self)
{
    struct tenrec_tensor *t = ((struct tensor *)self)->t;

    if (!t)
        PyErr_SetString(PyExc_ValueError, "this Tensor was not made by Tenrec");
    return t;
}

static bool tensor_on_host(const struct tenrec_tensor_desc *d)
{
    if (d->device.kind != TENREC_CPU)
        PyErr_Format(PyExc_BufferError, "the tensor is in memory of device %d, not of the host",
                     (int)d->device.index);
    return d->device.kind == TENREC_CPU;
}

/* ---- the buffer protocol ---------------------------------------------------------- */

static bool tensor_fill(Py_buffer *view, const struct tenrec_tensor *t,
                        const struct tenrec_tensor_desc *d)
{
    static char nothing[1]; /* a buffer of no bytes has an address, too */
    const char *format = element_format(d->dtype);
    Py_ssize_t *strides;

    if (!format) {
        PyErr_Format(PyExc_BufferError,
                     "the buffer protocol has no format for elements of type %s: use DLPack, such "
                     "as torch.from_dlpack(tensor)",
                     tenrec_dtype_name(d->dtype));
        return false;
    }
    strides = calloc(d->ndim ? d->ndim : 1, sizeof *strides);
    if (!strides) {
        PyErr_NoMemory();
        return false;
    }
    for (uint32_t i = 0; i < d->ndim; i++)
        strides[i] = (Py_ssize_t)d->strides[i] * (d->dtype.bits / 8);
    view->buf = tenrec_tensor_count(t) ? tenrec_tensor_data(t) : nothing;
    view->len = (Py_ssize_t)tenrec_tensor_bytes(t);
    view->itemsize = d->dtype.bits / 8;
    view->readonly = (d->flags & TENREC_TENSOR_READ_ONLY) != 0;
    view->ndim = (int)d->ndim;
    view->format = (char *)format;
    view->shape = (Py_ssize_t *)d->shape;
    view->strides = strides;
    view->suboffsets = NULL;
    view->internal = strides;
    return true;
}

/* Returns NULL, or why the consumer cannot have what it asked for. */
static const char *tensor_refusal(const Py_buffer *view, int flags)
{
    if ((flags & PyBUF_WRITABLE) && view->readonly)
        return "the tensor is in memory of another process and read-only: copy it first";
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'C'))
        return "the tensor is not contiguous";
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'F'))
        return "the tensor is not contiguous by columns";
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !PyBuffer_IsContiguous(view, 'C'))
        return "the tensor is not contiguous, and the consumer takes no strides";
    return NULL;
}

static int tensor_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct tenrec_tensor *t = tensor_checked(self);
    const struct tenrec_tensor_desc *d = t ? tenrec_tensor_desc(t) : NULL;
    const char *refusal;

    view->obj = NULL;
    if (!t || !tensor_on_host(d) || !tensor_fill(view, t, d))
        return -1;
    refusal = tensor_refusal(view, flags);
    if (refusal) {
        free(view->internal);
        PyErr_SetString(PyExc_BufferError, refusal);
        return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        view->strides = NULL;
    if ((flags & PyBUF_ND) != PyBUF_ND)
        view->shape = NULL;
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    view->obj = Py_NewRef(self);
    return 0;
}

static void tensor_release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    free(view->internal);
}

/* ---- DLPack ------------------------------------------------------------------------ */

static void tensor_unused_capsule(PyObject *capsule)
{
    /* A consumer renames the capsule that it has taken. */
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *dl = PyCapsule_GetPointer(capsule, "dltensor");

        dl->deleter(dl);
    }
}

/* Keywords of later versions of DLPack ask for what this version cannot give, or allow what it
 * need not. */
static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct tenrec_tensor *t = tensor_checked(self);
    DLManagedTensor *dl;
    PyObject *capsule;
    tenrec_error err;

    (void)args;
    (void)keywords;
    if (!t || !tensor_on_host(tenrec_tensor_desc(t)))
        return NULL;
    if (tenrec_tensor_desc(t)->flags & TENREC_TENSOR_READ_ONLY) {
        PyErr_SetString(PyExc_BufferError,
                        "the tensor is read-only, which DLPack cannot say: use tensor.copy()");
        return NULL;
    }
    if (tenrec_tensor_to_dlpack(t, &dl, &err))
        return error_raise(&err);
    capsule = PyCapsule_New(dl, "dltensor", tensor_unused_capsule);
    if (!capsule)
        dl->deleter(dl);
    return capsule;
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);
    const struct tenrec_tensor_desc *d = t ? tenrec_tensor_desc(t) : NULL;

    (void)unused;
    return t ? Py_BuildValue("ii", (int)d->device.kind, (int)d->device.index) : NULL;
}

/* ---- the rest ------------------------------------------------------------------------ */

static PyObject *tensor_copy(PyObject *self, PyObject *unused)
{
    struct tenrec_tensor *t = tensor_checked(self), *copy = NULL;
    tenrec_status st;
    tenrec_error err;

    (void)unused;
    if (!t)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_tensor_copy(t, &copy, &err);
    Py_END_ALLOW_THREADS
    return st ? error_raise(&err) : tensor_wrap(copy);
}

static PyObject *tensor_to_list(PyObject *self, PyObject *unused)
{
    PyObject *view = PyMemoryView_FromObject(self), *list;

    (void)unused;
    list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    return list;
}

/* numpy asks for this where the buffer protocol has refused, and makes an array of objects of a
 * tensor that lacks it. */
static PyObject *tensor_array(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *view = PyMemoryView_FromObject(self), *numpy, *made;

    (void)args;
    (void)keywords;
    if (!view) {
        PyObject *type, *value, *trace;

        PyErr_Fetch(&type, &value, &trace);
        PyErr_Format(PyExc_TypeError, "%S", value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return NULL;
    }
    numpy = PyImport_ImportModule("numpy");
    made = numpy ? PyObject_CallMethod(numpy, "asarray", "O", view) : NULL;
    Py_XDECREF(numpy);
    Py_DECREF(view);
    return made;
}

static PyObject *tensor_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tensor_array(self, NULL, NULL);
}

static PyObject *tensor_deep_copy(PyObject *self, PyObject *memo)
{
    (void)memo;
    return tensor_copy(self, NULL);
}

/* The elements by rows, as bytes. */
static PyObject *tensor_to_bytes(struct tenrec_tensor *t)
{
    struct tenrec_tensor *copy = NULL;
    PyObject *bytes;
    tenrec_status st;
    tenrec_error err;

    Py_BEGIN_ALLOW_THREADS
    st = tenrec_tensor_copy(t, &copy, &err);
    Py_END_ALLOW_THREADS
    if (st)
        return error_raise(&err);
    bytes =
        PyBytes_FromStringAndSize(tenrec_tensor_data(copy), (Py_ssize_t)tenrec_tensor_bytes(copy));
    tenrec_tensor_drop(copy);
    return bytes;
}

static PyObject *tensor_shape(PyObject *self, void *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);
    const struct tenrec_tensor_desc *d = t ? tenrec_tensor_desc(t) : NULL;
    PyObject *shape = t ? PyTuple_New((Py_ssize_t)d->ndim) : NULL;

    (void)unused;
    for (uint32_t i = 0; shape && i < d->ndim; i++) {
        PyObject *length = PyLong_FromLongLong(d->shape[i]);

        if (!length || PyTuple_SetItem(shape, (Py_ssize_t)i, length) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *tensor_dtype(PyObject *self, void *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);

    (void)unused;
    return t ? PyUnicode_FromString(tenrec_dtype_name(tenrec_tensor_desc(t)->dtype)) : NULL;
}

static PyObject *tensor_read_only(PyObject *self, void *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);

    (void)unused;
    return t ? PyBool_FromLong((tenrec_tensor_desc(t)->flags & TENREC_TENSOR_READ_ONLY) != 0)
             : NULL;
}

static PyObject *tensor_ndim(PyObject *self, void *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);

    (void)unused;
    return t ? PyLong_FromUnsignedLong(tenrec_tensor_desc(t)->ndim) : NULL;
}

static PyObject *tensor_nbytes(PyObject *self, void *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);

    (void)unused;
    return t ? PyLong_FromSize_t(tenrec_tensor_bytes(t)) : NULL;
}

static Py_ssize_t tensor_length(PyObject *self)
{
    struct tenrec_tensor *t = tensor_checked(self);

    if (t && tenrec_tensor_desc(t)->ndim)
        return (Py_ssize_t)tenrec_tensor_desc(t)->shape[0];
    if (t)
        PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
    return -1;
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = tensor_shape(self, NULL), *text = NULL;

    if (shape) {
        const struct tenrec_tensor_desc *d = tenrec_tensor_desc(((struct tensor *)self)->t);

        text =
            PyUnicode_FromFormat("<tenrec_rpc.Tensor, %s, shape %S%s>", tenrec_dtype_name(d->dtype),
                                 shape, (d->flags & TENREC_TENSOR_READ_ONLY) ? ", read-only" : "");
    }
    Py_XDECREF(shape);
    return text;
}

/* new_tensor(shape, dtype, False, bytes) makes it again. */
static PyObject *tensor_reduce(PyObject *self, PyObject *unused)
{
    struct tenrec_tensor *t = tensor_checked(self);
    PyObject *core, *make;

    (void)unused;
    if (!t || !tensor_on_host(tenrec_tensor_desc(t)))
        return NULL;
    core = PyImport_ImportModule("tenrec_rpc._core");
    make = core ? PyObject_GetAttrString(core, "new_tensor") : NULL;
    Py_XDECREF(core);
    return make ? Py_BuildValue("N(NNON)", make, tensor_shape(self, NULL), tensor_dtype(self, NULL),
                                Py_False, tensor_to_bytes(t))
                : NULL;
}

static PyMethodDef tensor_methods[] = {
    { "__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
      "Returns a DLPack capsule that shares the memory." },
    { "__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
      "Returns DLPack's kind of the device, 1 for the host, and its index." },
    { "__array__", (PyCFunction)(void (*)(void))tensor_array, METH_VARARGS | METH_KEYWORDS,
      "Returns a numpy array that shares the memory; TypeError for elements that numpy lacks." },
    { "numpy", tensor_numpy, METH_NOARGS,
      "Returns a numpy array that shares the memory; TypeError for elements that numpy lacks." },
    { "__copy__", tensor_copy, METH_NOARGS, "As copy." },
    { "__deepcopy__", tensor_deep_copy, METH_O, "As copy." },
    { "__reduce__", tensor_reduce, METH_NOARGS, "For pickle: a copy in memory of the process." },
    { "tolist", tensor_to_list, METH_NOARGS, "Returns the elements as nested lists." },
    { "copy", tensor_copy, METH_NOARGS,
      "Returns a contiguous copy in writable memory of this process." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef tensor_properties[] = {
    { "shape", tensor_shape, NULL, "Lengths, in elements.", NULL },
    { "dtype", tensor_dtype, NULL, "Type of the elements: \"float32\", \"bfloat16\", ...", NULL },
    { "ndim", tensor_ndim, NULL, "Number of dimensions.", NULL },
    { "nbytes", tensor_nbytes, NULL, "Bytes of all elements.", NULL },
    { "read_only", tensor_read_only, NULL, "True for memory of another process.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

bool tensor_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_doc, "A tensor. Its memory is that of the message, and is shared, without a copy, "
                     "with memoryview(tensor), numpy.asarray(tensor) and X.from_dlpack(tensor)." },
        { Py_tp_dealloc, tensor_dealloc },
        { Py_tp_repr, tensor_repr },
        { Py_sq_length, tensor_length },
        { Py_bf_getbuffer, tensor_get_buffer },
        { Py_bf_releasebuffer, tensor_release_buffer },
        { Py_tp_methods, tensor_methods },
        { Py_tp_getset, tensor_properties },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc.Tensor", sizeof(struct tensor), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };

    PyObject *type = python_add_type(module, &spec);

    python_hold(&tensor_type, type);
    Py_XDECREF(type);
    return type;
}
