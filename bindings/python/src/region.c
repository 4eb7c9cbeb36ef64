/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include "future.h"
#include "value.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

struct region {
    PyObject_HEAD
    struct tenrec_region *r; /* NULL after the drop */
    PyObject *tensor, *worker;
    int revokes; /* that are under way, and use `r` */
    bool dropped;
};

static PyObject *region_base, *region_type, *ref_type;

void region_use(PyObject *type, PyObject *ref)
{
    python_hold(&region_type, type);
    python_hold(&ref_type, ref);
}

/* ---- references ------------------------------------------------------------------- */

PyObject *region_ref_wrap(const struct tenrec_region_ref *ref)
{
    if (ref_type)
        return PyObject_CallFunction(ref_type, "y#", (const char *)ref, (Py_ssize_t)sizeof *ref);
    PyErr_SetString(PyExc_RuntimeError, "the interpreter ends");
    return NULL;
}

bool region_ref_is(PyObject *o)
{
    return ref_type && PyObject_TypeCheck(o, (PyTypeObject *)ref_type);
}

bool region_ref_read(const char *bytes, Py_ssize_t n, struct tenrec_region_ref *ret)
{
    if (n == sizeof *ret)
        memcpy(ret, bytes, sizeof *ret);
    else
        PyErr_Format(PyExc_ValueError, "a reference of %zd bytes, expected the %zu of Region.ref",
                     n, sizeof *ret);
    return n == sizeof *ret;
}

/* ---- the region -------------------------------------------------------------------- */

PyObject *region_new(PyObject *worker, PyObject *args)
{
    struct tenrec_worker *w = worker_of(worker);
    struct tenrec_region *r;
    PyObject *o, *tensor, *self;
    unsigned rights;
    tenrec_status st;
    tenrec_error err;

    if (!w || !PyArg_ParseTuple(args, "OI", &o, &rights))
        return NULL;
    tensor = memory_tensor(o);
    if (!tensor)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = tenrec_region_new(w, tensor_of(tensor), rights, &r, &err);
    Py_END_ALLOW_THREADS
    self = st ? error_raise(&err) : python_new(region_type);
    if (!self) {
        if (!st)
            tenrec_region_drop(r);
        Py_DECREF(tensor);
        return NULL;
    }
    ((struct region *)self)->r = r;
    ((struct region *)self)->tensor = tensor;
    ((struct region *)self)->worker = Py_NewRef(worker);
    return self;
}

/* ---- the end ------------------------------------------------------------------------ */

/* Unless a revoke still uses the region, which drops it then. */
static void region_release(struct region *me)
{
    struct tenrec_region *r = me->r;

    me->dropped = true;
    if (me->revokes > 0 || !r || !worker_is_own(me->worker))
        return;
    me->r = NULL;
    Py_BEGIN_ALLOW_THREADS
    tenrec_region_drop(r);
    Py_END_ALLOW_THREADS
}

static void region_dealloc(PyObject *self)
{
    struct region *me = (struct region *)self;

    region_release(me);
    Py_XDECREF(me->tensor);
    Py_XDECREF(me->worker);
    python_free(self);
    garbage_drain();
}

static PyObject *region_drop(PyObject *self, PyObject *unused)
{
    (void)unused;
    region_release((struct region *)self);
    garbage_drain();
    Py_RETURN_NONE;
}

static struct region *region_checked(PyObject *self)
{
    struct region *me = (struct region *)self;

    if (me->r && !me->dropped)
        return me;
    PyErr_SetString(PyExc_ValueError,
                    me->tensor ? "this Region was dropped" : "this Region was not made by Tenrec");
    return NULL;
}

struct revoke {
    struct wait wait; /* first */
    struct region *region;
    int64_t ms;
};

static tenrec_status revoke_run(void *self, tenrec_error *err)
{
    const struct revoke *v = self;

    return tenrec_region_revoke(v->region->r, v->ms, err);
}

static void revoke_release(void *self)
{
    struct region *me = ((struct revoke *)self)->region;

    if (--me->revokes == 0 && me->dropped)
        region_release(me);
}

static PyObject *region_revoke(PyObject *self, PyObject *ms)
{
    struct region *me = region_checked(self);
    const long long limit = PyLong_AsLongLong(ms);
    struct revoke *v;

    if (!me || !worker_of(me->worker) || PyErr_Occurred())
        return NULL;
    v = wait_new(sizeof *v, self, NULL);
    if (!v)
        return NULL;
    v->wait.run = revoke_run;
    v->wait.release = revoke_release;
    v->region = me;
    v->ms = limit;
    me->revokes++;
    if (!wait_run(v))
        return NULL;
    wait_end(v);
    Py_RETURN_NONE;
}

/* ---- known without a wait -------------------------------------------------------------- */

static PyObject *region_describe(PyObject *self, PyObject *unused)
{
    struct region *me = region_checked(self);
    struct tenrec_region_ref ref;

    (void)unused;
    if (!me)
        return NULL;
    tenrec_region_describe(me->r, &ref);
    return region_ref_wrap(&ref);
}

static PyObject *region_pending(PyObject *self, void *unused)
{
    struct region *me = region_checked(self);

    (void)unused;
    return me ? PyLong_FromUnsignedLongLong(tenrec_region_pending(me->r)) : NULL;
}

static PyObject *region_tensor(PyObject *self, void *unused)
{
    struct region *me = region_checked(self);

    (void)unused;
    return me ? Py_NewRef(me->tensor) : NULL;
}

static int region_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct region *me = region_checked(self);

    view->obj = NULL;
    return me ? PyObject_GetBuffer(me->tensor, view, flags) : -1;
}

static PyMethodDef region_methods[] = {
    { "_revoke", region_revoke, METH_O, NULL },
    { "_describe", region_describe, METH_NOARGS, NULL },
    { "drop", region_drop, METH_NOARGS,
      "Ends the region as revoke does, but without a wait. Its memory is released once no transfer "
      "uses it." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef region_properties[] = {
    { "pending", region_pending, NULL, "The number of transfers that use the memory now.", NULL },
    { "tensor", region_tensor, NULL, "The memory, as a Tensor.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

bool region_add_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, region_dealloc },
        { Py_bf_getbuffer, region_get_buffer },
        { Py_tp_methods, region_methods },
        { Py_tp_getset, region_properties },
        { 0, NULL },
    };
    static PyType_Spec spec = { "tenrec_rpc._core.Region", sizeof(struct region), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots };
    PyObject *type = python_add_type(module, &spec);

    python_hold(&region_base, type);
    Py_XDECREF(type);
    return type;
}

/* ---- transfers ------------------------------------------------------------------------- */

/* What a batch needs; it borrows from the tensors and the arguments. */
struct batch {
    struct tenrec_bulk *entry;
    Py_ssize_t n;
    PyObject *kept; /* list */
    struct values args;
    struct tenrec_bulk_options options;
};

/* Reads (writes, reference, offset, memory). */
static bool batch_read_entry(struct batch *b, struct tenrec_bulk *e, PyObject *from)
{
    unsigned long long offset;
    PyObject *local, *tensor;
    const char *ref;
    Py_ssize_t n;
    int writes;

    if (!PyArg_ParseTuple(from, "py#KO", &writes, &ref, &n, &offset, &local) ||
        !region_ref_read(ref, n, &e->remote))
        return false;
    tensor = memory_tensor(local);
    if (!tensor || PyList_Append(b->kept, tensor) < 0) {
        Py_XDECREF(tensor);
        return false;
    }
    Py_DECREF(tensor); /* the list has it */
    e->size = sizeof *e;
    e->direction = writes ? TENREC_BULK_WRITE : TENREC_BULK_READ;
    e->remote_offset = offset;
    e->local = tensor_of(tensor);
    e->bytes = tenrec_tensor_bytes(e->local);
    return true;
}

static bool batch_read_entries(struct batch *b, PyObject *entries)
{
    b->n = PyTuple_Size(entries);
    b->kept = PyList_New(0);
    b->entry = calloc(b->n ? (size_t)b->n : 1, sizeof *b->entry);
    if (!b->kept)
        return false;
    if (!b->entry) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < b->n; i++)
        if (!batch_read_entry(b, &b->entry[i], PyTuple_GetItem(entries, i)))
            return false;
    return true;
}

/* Reads (entries, ms, then or None, args). */
static bool batch_read(struct batch *b, PyObject *from)
{
    PyObject *entries, *args;
    long long ms;

    if (!PyArg_ParseTuple(from, "O!LzO!", &PyTuple_Type, &entries, &ms, &b->options.then,
                          &PyTuple_Type, &args) ||
        !batch_read_entries(b, entries) || !values_read(&b->args, args))
        return false;
    b->options.size = sizeof b->options;
    b->options.timeout_ms = ms;
    b->options.args = b->args.item;
    b->options.n_args = b->args.n;
    return true;
}

static void batch_finish(struct batch *b)
{
    free(b->entry);
    Py_XDECREF(b->kept);
    values_finish(&b->args);
    garbage_drain();
}

/* Begins the transfers; false with an exception.
 *
 * wait     as call_start of call.c
 * ret      shares: drop it
 */
static bool batch_begin(struct batch *b, PyObject *worker, PyObject *args, bool wait,
                        struct tenrec_future **ret)
{
    struct tenrec_worker *w = worker_of(worker);
    const bool read = w && batch_read(b, args);
    tenrec_status st = TENREC_OK;
    tenrec_error err;

    if (read) {
        b->options.flags = wait ? TENREC_WAIT_NEXT : 0;
        Py_BEGIN_ALLOW_THREADS
        st = tenrec_bulk_async(w, b->entry, (size_t)b->n, &b->options, ret, &err);
        if (st == TENREC_OK && wait)
            (void)tenrec_future_wait(*ret, WAIT_SLICE_MS, NULL);
        Py_END_ALLOW_THREADS
    }
    batch_finish(b);
    if (st)
        error_raise(&err);
    return read && !st;
}

PyObject *region_transfer(PyObject *worker, PyObject *args)
{
    struct tenrec_future *f;
    struct batch b = { 0 };

    return batch_begin(&b, worker, args, true, &f) ? call_result(TENREC_OK, f, NULL, worker) : NULL;
}

PyObject *region_transfer_async(PyObject *worker, PyObject *args)
{
    struct tenrec_future *f, *visible, *buffers_free;
    struct batch b = { .options = { .ret_visible = &visible, .ret_free = &buffers_free } };

    return batch_begin(&b, worker, args, false, &f)
               ? future_wrap_transfer(f, visible, buffers_free, worker)
               : NULL;
}
